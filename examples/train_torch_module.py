"""ResNet152 at batch 256 within 12 GiB of a GPU. The same in plain PyTorch: train_torch_module_plain.py."""

import sys

import torch
import torchvision

import tidepool.torch

device, batch, size, memory = ("cuda", 256, 224, "12GiB") if torch.cuda.is_available() else ("cpu", 8, 64, "400MiB")
if device == "cuda":  # as on a card of 12 GiB
    torch.cuda.set_per_process_memory_fraction(min(1.0, 12 * 2**30 / torch.cuda.mem_get_info()[1]))

torch.manual_seed(1)
model = torchvision.models.resnet152(num_classes=100).to(device)
images, labels = torch.randn(2 * batch, 3, size, size), torch.randint(0, 100, (2 * batch,))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, labels), batch)
criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)

if "--explain" in sys.argv:
    print(tidepool.torch.explain(model, loader, loss=criterion, memory=memory, optimizer="momentum", device="h200"))
    sys.exit()
trainer = tidepool.torch.compile(model, loader, loss=criterion, memory=memory, optimizer=optimizer)
for epoch in range(2):
    for x, y in loader:
        print(f"loss {trainer.step(x, y):.4f}")
    scheduler.step()
trainer.sync()
print(f"peak {trainer.memory['device_bytes'] / 2**30:.2f} GiB of {memory}")
torch.save(model.state_dict(), "resnet152.pt")
