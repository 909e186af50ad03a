"""ResNet152 at batch 256 on a GPU of 12 GiB in plain PyTorch: it runs out of memory. See train_torch_module.py."""

import torch
import torchvision

device, batch, size = ("cuda", 256, 224) if torch.cuda.is_available() else ("cpu", 8, 64)
if device == "cuda":  # as on a card of 12 GiB
    torch.cuda.set_per_process_memory_fraction(min(1.0, 12 * 2**30 / torch.cuda.mem_get_info()[1]))

torch.manual_seed(1)
model = torchvision.models.resnet152(num_classes=100).to(device)
images, labels = torch.randn(2 * batch, 3, size, size), torch.randint(0, 100, (2 * batch,))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, labels), batch)
criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)

for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.4f}")
    scheduler.step()
torch.save(model.state_dict(), "resnet152.pt")
