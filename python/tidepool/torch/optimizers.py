"""The settings of torch's optimizers as a session's, and their state both ways."""

import torch

from .. import Error
from ..checks import a, number, short

# Words of a group that must be what they are here, with what to do about them.
PLAIN = {"dampening": 0, "maximize": False, "amsgrad": False}
# What a session keeps from its beginning; only rates are read before each step.
KEPT = ("momentum", "nesterov", "betas", "eps", "weight_decay", "decoupled_weight_decay", *PLAIN)


def kept_of(optimizer):
    """By group: what must stay, and whose parameters."""
    return [({word: plain(group[word]) for word in KEPT if word in group},
             [id(parameter) for parameter in group["params"]]) for group in optimizer.param_groups]


def plain(value):
    """Numbers may come as tensors."""
    if isinstance(value, (tuple, list)):
        return tuple(plain(one) for one in value)
    return value.item() if isinstance(value, torch.Tensor) else value


def same_in_all(groups, word):
    values = {repr(group[word]): group[word] for group in groups if word in group}
    if len(values) > 1:
        raise Error(f"the optimizer's groups have several {word}: {', '.join(values)}; a session has one for all")
    return next(iter(values.values()), None)


def kind_of(optimizer):
    groups = optimizer.param_groups
    for word, wanted in PLAIN.items():
        value = same_in_all(groups, word)
        if value is not None and value != wanted:
            raise Error(f"the optimizer has {word}={value}, which there is not; leave it out")
    if isinstance(optimizer, torch.optim.SGD):
        momentum = float(same_in_all(groups, "momentum"))
        if momentum == 0:
            return "sgd", {}
        return "nesterov" if same_in_all(groups, "nesterov") else "momentum", {"momentum": momentum}
    if isinstance(optimizer, (torch.optim.Adam, torch.optim.AdamW)):
        decoupled = isinstance(optimizer, torch.optim.AdamW) or bool(same_in_all(groups, "decoupled_weight_decay"))
        beta1, beta2 = same_in_all(groups, "betas")
        return "adamw" if decoupled else "adam", {
            "beta1": float(beta1), "beta2": float(beta2), "epsilon": float(same_in_all(groups, "eps"))}
    raise Error(f"the optimizer is {a(optimizer)}; there are SGD, Adam and AdamW")


class Settings:
    """How all parameters are trained, and how single ones differ."""

    # By what torch calls them: the state of each kind.
    MOMENTS = {"momentum": {"momentum_buffer": "first_moment"}, "nesterov": {"momentum_buffer": "first_moment"},
               "adam": {"exp_avg": "first_moment", "exp_avg_sq": "second_moment"},
               "adamw": {"exp_avg": "first_moment", "exp_avg_sq": "second_moment"}, "sgd": {}}

    def __init__(self, kind, options, rate, optimizer=None):
        self.kind, self.rate, self.optimizer = kind, rate, optimizer
        self.options = {"optimizer": kind, **options}
        self.factors = []  # by group: its rate, of the first one's

    @classmethod
    def of(cls, optimizer, rate=None):
        """Of a torch optimizer, whose rates are looked at before each step, so that schedulers work as they do; or by a
        name in tidepool, with a rate."""
        if isinstance(optimizer, str):
            if rate is None:
                raise Error(f"optimizer='{optimizer}' needs learning_rate=; or give a torch optimizer")
            return cls(optimizer, {}, number("learning_rate", rate))
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise Error(f"optimizer={short(optimizer)} is {a(optimizer)}; give SGD, Adam or AdamW of torch.optim, or a "
                        f"name such as 'adamw'")
        kind, options = kind_of(optimizer)
        groups = optimizer.param_groups
        rates = [number("a group's learning rate", group.get("initial_lr", group["lr"])) for group in groups]
        decays = [number("weight_decay", group.get("weight_decay", 0)) for group in groups]
        result = cls(kind, {**options, "weight_decay": max(decays)}, None, optimizer)
        result.base = max(range(len(groups)), key=lambda g: rates[g])
        highest = rates[result.base]
        result.factors = [rate / highest if highest > 0 else 1.0 for rate in rates]
        result.decays = [decay / max(decays) if max(decays) > 0 else 1.0 for decay in decays]
        result.kept = kept_of(optimizer)
        return result

    def check_unchanged(self):
        """What is read once is not to change without notice."""
        if self.optimizer is None:
            return
        now = kept_of(self.optimizer)
        if now == self.kept:
            return
        if len(now) != len(self.kept) or any(new[1] != old[1] for new, old in zip(now, self.kept)):
            raise Error("the optimizer's groups have other parameters than when the module was compiled; sync() and "
                        "compile again")
        for group, ((new, _), (old, _)) in enumerate(zip(now, self.kept)):
            for word in KEPT:
                if new.get(word) == old.get(word):
                    continue
                schedule = "make the scheduler with cycle_momentum=False, " if word in ("momentum", "betas") else ""
                raise Error(f"the optimizer's param_groups[{group}]['{word}'] changed from {old.get(word)} to "
                            f"{new.get(word)} after the module was compiled, and only rates may; {schedule}change it "
                            f"back, or sync() and compile again")

    def learning_rate(self):
        """Of the next step."""
        if self.optimizer is None:
            return float(self.rate)
        groups = self.optimizer.param_groups
        rate = float(groups[self.base]["lr"])
        for group, factor in zip(groups, self.factors):
            if abs(float(group["lr"]) - factor * rate) > 1e-6 * max(rate, 1e-30):
                raise Error(f"a group's learning rate is {float(group['lr']):.6g}, which is not {factor:.6g} times that "
                            f"of the first, as it was; schedules must keep the groups' proportions")
        return rate

    def by_array(self, arrays):
        """What `Network.with_parameters` takes. arrays: of the network, {name: parameter of the module}."""
        if self.optimizer is None:
            return {}
        group_of = {id(parameter): number for number, group in enumerate(self.optimizer.param_groups)
                    for parameter in group["params"]}
        known = {id(parameter) for parameter in arrays.values()}
        strangers = sum(number not in known for number in group_of)
        if strangers == len(group_of):
            raise Error("the optimizer has none of the module's parameters; make it of module.parameters()")
        result = {}
        for name, parameter in arrays.items():
            group = group_of.get(id(parameter))
            if group is None:  # it stays what it is
                result[name] = {"rate": 0.0, "decay": 0.0}
            elif self.factors[group] != 1 or self.decays[group] != 1:
                result[name] = {"rate": self.factors[group], "decay": self.decays[group]}
        return result

    def stepped(self):
        """Schedulers ask whether the optimizer was called."""
        if self.optimizer is not None:
            self.optimizer._opt_called = True

    def moments(self, arrays):
        """The torch optimizer's state, by array, and the steps that it has done."""
        found, steps = {}, 0
        if self.optimizer is None:
            return found, steps
        for name, parameter in arrays.items():
            state = self.optimizer.state.get(parameter)
            if not state:
                continue
            found[name] = {ours: state[theirs].detach().cpu().float().contiguous().numpy()
                           for theirs, ours in self.MOMENTS[self.kind].items() if state.get(theirs) is not None}
            if "step" in state:
                steps = max(steps, int(state["step"]))
        return {name: moments for name, moments in found.items() if moments}, steps

    def write_back(self, moments, arrays, steps):
        """Into the torch optimizer, so that it can go on, and be saved."""
        if self.optimizer is None:
            return
        for name, parameter in arrays.items():
            if name not in moments:
                continue
            state = self.optimizer.state[parameter]
            for theirs, ours in self.MOMENTS[self.kind].items():
                state[theirs] = torch.from_numpy(moments[name][ours].reshape(tuple(parameter.shape))).to(parameter)
            if self.kind.startswith("adam"):
                state["step"] = torch.tensor(float(steps))
