#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes golden traces of the loss scale of well-known systems.

    python3 generate_loss_scale_traces.py > loss_scale_traces.txt

Each class below follows the published rule of one system, with that system's own parameters, state
and number type; none knows the rules of the others or of demi. The overflows come from a simulated
run: a step overflows where the scale is above a wandering limit, and now and then by chance.

A trace is four lines:
    case NAME SETTING=VALUE...     preset, and the settings of demi that differ from it
    initial BITS                   the scale before the first step, as the bits of a float in hex,
                                   without the zeros at its end
    steps CLEAN BAD CLEAN BAD...   lengths of the runs of clean and bad steps, in turn
    scales STEPS:BITS...           each change: the steps since the last change, and the new scale
"""

import math
import random
import struct

SMALLEST, LARGEST = 2.0**-125, 2.0**125


def f32(value):
    """Rounds to float; infinity beyond its range."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def bits(value):
    return struct.pack(">f", value).hex().rstrip("0")


class Pytorch:
    """Scale float32 and tracker on the device, factors double; an infinite candidate is dropped."""

    def __init__(self, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5,
                 growth_interval=2000):
        self.scale = f32(init_scale)
        self.growth_factor, self.backoff_factor = growth_factor, backoff_factor
        self.growth_interval, self.growth_tracker = growth_interval, 0

    def update(self, found_inf):
        if found_inf:
            self.scale = f32(self.scale * self.backoff_factor)
            self.growth_tracker = 0
            return
        successful = self.growth_tracker + 1
        if successful == self.growth_interval:
            candidate = f32(self.scale * self.growth_factor)
            if math.isfinite(candidate):
                self.scale = candidate
            successful = 0
        self.growth_tracker = successful


class ApexHysteresis:
    """The kernel: a bad step is tolerated while the tracker is positive; any clean one refills."""

    def __init__(self, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5,
                 growth_interval=2000, hysteresis=2):
        self.scale, self.growth_tracker = f32(init_scale), 0
        self.growth_factor, self.backoff_factor = growth_factor, backoff_factor
        self.growth_interval = growth_interval
        self.hysteresis = self.hysteresis_tracker = hysteresis

    def update(self, found_inf):
        if found_inf:
            self.hysteresis_tracker -= 1
            self.growth_tracker = 0
            if self.hysteresis_tracker <= 0:
                self.scale = f32(self.scale * self.backoff_factor)
            return
        self.hysteresis_tracker = self.hysteresis
        self.growth_tracker += 1
        if self.growth_tracker == self.growth_interval:
            self.growth_tracker = 0
            candidate = f32(self.scale * self.growth_factor)
            self.scale = candidate if math.isfinite(candidate) else self.scale


class ApexAmp:
    """Python numbers; optional minimum, maximum 2^24, counts steps that were not skipped."""

    def __init__(self, init_scale=2.0**16, scale_window=2000, min_loss_scale=None,
                 max_loss_scale=2.0**24):
        self.scale, self.scale_window = init_scale, scale_window
        self.min_loss_scale, self.max_loss_scale = min_loss_scale, max_loss_scale
        self.unskipped = 0

    def update(self, overflow):
        if overflow:
            self.scale /= 2.0
            if self.min_loss_scale is not None:
                self.scale = max(self.min_loss_scale, self.scale)
            self.unskipped = 0
        else:
            self.unskipped += 1
        if self.unskipped == self.scale_window:
            self.scale = min(self.max_loss_scale, self.scale * 2.0)
            self.unskipped = 0


class ApexFp16Utils:
    """Works with step numbers: grows where the distance to the last bad one fits the window."""

    def __init__(self, init_scale=2.0**32, scale_factor=2.0, scale_window=1000):
        self.scale, self.scale_factor, self.scale_window = init_scale, scale_factor, scale_window
        self.iteration, self.last_bad = 0, -1

    def update(self, overflow):
        if overflow:
            self.scale = max(self.scale / self.scale_factor, 1.0)
            self.last_bad = self.iteration
        elif (self.iteration - self.last_bad) % self.scale_window == 0:
            self.scale *= self.scale_factor
        self.iteration += 1


class Megatron:
    """Float32 scale; bad steps use up the hysteresis, which only growth refills."""

    def __init__(self, initial_scale=2.0**32, min_scale=1.0, growth_factor=2.0,
                 backoff_factor=0.5, growth_interval=1000, hysteresis=2):
        self.scale, self.min_scale = f32(initial_scale), f32(min_scale)
        self.growth_factor, self.backoff_factor = growth_factor, backoff_factor
        self.growth_interval, self.growth_tracker = growth_interval, 0
        self.hysteresis = self.hysteresis_tracker = hysteresis

    def update(self, found_inf):
        if found_inf:
            self.growth_tracker = 0
            self.hysteresis_tracker -= 1
            if self.hysteresis_tracker <= 0:
                self.scale = max(f32(self.scale * self.backoff_factor), self.min_scale)
        else:
            self.growth_tracker += 1
            if self.growth_tracker == self.growth_interval:
                self.growth_tracker = 0
                self.hysteresis_tracker = self.hysteresis
                self.scale = f32(self.scale * self.growth_factor)


class Deepspeed:
    """Step numbers; the clean step after a bad one counts as 0. Does not raise at the minimum."""

    def __init__(self, init_scale=2.0**16, scale_window=1000, min_scale=1.0, delayed_shift=2,
                 consecutive_hysteresis=False):
        self.scale, self.scale_window, self.min_scale = init_scale, scale_window, min_scale
        self.delayed_shift = self.cur_hysteresis = delayed_shift
        self.consecutive_hysteresis = consecutive_hysteresis
        self.iteration, self.last_bad = 0, -1

    def update(self, overflow):
        if overflow:
            if self.cur_hysteresis == 1:
                self.scale = max(self.scale / 2.0, self.min_scale)
            else:
                self.cur_hysteresis -= 1
            self.last_bad = self.iteration
        else:
            if self.consecutive_hysteresis:
                self.cur_hysteresis = self.delayed_shift
            stable = self.iteration - self.last_bad - 1
            if stable > 0 and stable % self.scale_window == 0:
                self.cur_hysteresis = self.delayed_shift
                self.scale *= 2.0
        self.iteration += 1


class DeepspeedFused:
    """The fused float16 optimizer's own update: no hysteresis."""

    def __init__(self, init_scale=2.0**32, scale_window=1000, min_scale=1.0):
        self.scale, self.scale_window, self.min_scale = init_scale, scale_window, min_scale
        self.iteration, self.last_bad = 0, -1

    def update(self, skip):
        if skip:
            self.scale = max(self.scale / 2.0, self.min_scale)
            self.last_bad = self.iteration
        else:
            stable = self.iteration - self.last_bad - 1
            if stable > 0 and stable % self.scale_window == 0:
                self.scale *= 2.0
        self.iteration += 1


class Keras:
    """Float32 variables; grows when the counter of finite steps is one below the period."""

    def __init__(self, initial_scale=2.0**15, dynamic_growth_steps=2000):
        self.scale, self.dynamic_growth_steps = f32(initial_scale), dynamic_growth_steps
        self.step_counter = 0

    def update(self, overflow):
        if overflow:
            self.step_counter = 0
            self.scale = f32(self.scale / 2.0)
        elif self.step_counter == self.dynamic_growth_steps - 1:
            self.step_counter = 0
            self.scale = f32(self.scale * 2.0)
        else:
            self.step_counter += 1


class Jmp:
    """A modular counter and one factor; an infinite product is dropped, the minimum is 1."""

    def __init__(self, loss_scale=2.0**15, period=2000, factor=2, min_loss_scale=1.0):
        self.scale, self.period, self.factor = f32(loss_scale), period, factor
        self.min_loss_scale, self.counter = f32(min_loss_scale), 0

    def update(self, overflow):
        if overflow:
            self.scale = max(f32(self.scale / self.factor), self.min_loss_scale)
            self.counter = 0
            return
        if self.counter == self.period - 1:
            product = f32(self.scale * self.factor)
            self.scale = product if math.isfinite(product) else self.scale
        self.counter = (self.counter + 1) % self.period


class Paddle:
    """Two counters, each reset by the other kind of step and when its own number is reached."""

    def __init__(self, init_loss_scaling=2.0**15, incr_ratio=2.0, decr_ratio=0.5,
                 incr_every_n_steps=1000, decr_every_n_nan_or_inf=1):
        self.scale = f32(init_loss_scaling)
        self.incr_ratio, self.decr_ratio = incr_ratio, decr_ratio
        self.incr_every, self.decr_every = incr_every_n_steps, decr_every_n_nan_or_inf
        self.good, self.bad = 0, 0

    def update(self, found_inf):
        if found_inf:
            self.good = 0
            self.bad += 1
            if self.bad == self.decr_every:
                self.bad = 0
                self.scale = max(f32(self.scale * self.decr_ratio), 1.0)
        else:
            self.bad = 0
            self.good += 1
            if self.good == self.incr_every:
                self.good = 0
                product = f32(self.scale * self.incr_ratio)
                self.scale = product if math.isfinite(product) else self.scale


class Mxnet:
    """Computes the next scale after each step; maximum 2^24."""

    def __init__(self, init_scale=2.0**16, scale_window=2000):
        self.scale, self.scale_window, self.unskipped = init_scale, scale_window, 0

    def update(self, overflow):
        following = self.scale
        if overflow:
            following, self.unskipped = self.scale / 2.0, 0
        else:
            self.unskipped += 1
        if self.unskipped == self.scale_window:
            following, self.unskipped = min(2.0**24, self.scale * 2.0), 0
        self.scale = following


def simulate(rng, system, steps, interval, spread, chance):
    """Runs a system against a wandering limit; returns the overflows and the scales."""
    centre = math.log2(system.scale)
    overflows, scales = [], [system.scale]
    limit = centre
    for step in range(steps):
        if step % (6 * interval) == 0:
            limit = centre + rng.uniform(*spread)
        bad = math.log2(system.scale) > limit or rng.random() < chance
        system.update(bad)
        assert SMALLEST <= system.scale <= LARGEST
        overflows.append(bad)
        scales.append(system.scale)
    return overflows, scales


def run_lengths(overflows):
    lengths, current = [0], False
    for bad in overflows:
        if bad != current:
            lengths.append(0)
            current = bad
        lengths[-1] += 1
    return lengths


def write_case(name, settings, system, seed, steps, interval, spread=(-6, 6), chance=None):
    chance = 0.5 / interval if chance is None else chance
    overflows, scales = simulate(random.Random(seed), system, steps, interval, spread, chance)
    changes, last = [], 0
    for step in range(1, len(scales)):
        if scales[step] != scales[step - 1]:
            changes.append(f"{step - last}:{bits(scales[step])}")
            last = step
    values = [f"{key}={value!r}" for key, value in settings.items()]
    print(" ".join(["case", name, *values]))
    print("initial", bits(scales[0]))
    print("steps", *run_lengths(overflows))
    print("scales", *changes)


def write_presets():
    """The defaults of each system, unchanged: long enough to grow several times."""
    systems = {
        "pytorch": Pytorch, "apex_amp": ApexAmp, "apex_fp16_utils": ApexFp16Utils,
        "apex_hysteresis": ApexHysteresis, "megatron": Megatron, "deepspeed": Deepspeed,
        "deepspeed_consecutive": lambda: Deepspeed(consecutive_hysteresis=True),
        "deepspeed_fused": DeepspeedFused, "keras": Keras, "jmp": Jmp, "paddle": Paddle,
        "mxnet": Mxnet,
    }
    for seed, (name, make) in enumerate(systems.items()):
        write_case(name, {}, make(), seed, steps=20000, interval=2000, chance=0.0002)


def write_small_windows():
    """Short intervals and many overflows, with the parameters of each system varied."""
    for seed, (window, hysteresis) in enumerate(((1, 2), (2, 3), (3, 2), (10, 1), (7, 4))):
        common = dict(seed=100 + seed, steps=300, interval=window)
        start = {"initial_scale": 2.0**10, "growth_interval": window}
        write_case("pytorch", start, Pytorch(2.0**10, growth_interval=window), **common)
        write_case("apex_amp", start, ApexAmp(2.0**10, window), **common)
        write_case("apex_fp16_utils", start, ApexFp16Utils(2.0**10, scale_window=window), **common)
        write_case("deepspeed_fused", start, DeepspeedFused(2.0**10, window), **common)
        write_case("keras", start, Keras(2.0**10, window), **common)
        write_case("jmp", start, Jmp(2.0**10, window), **common)
        write_case("mxnet", start, Mxnet(2.0**10, window), **common)

        patient = {**start, "hysteresis": hysteresis}
        write_case("apex_hysteresis", patient,
                   ApexHysteresis(2.0**10, growth_interval=window, hysteresis=hysteresis), **common)
        write_case("megatron", patient,
                   Megatron(2.0**10, growth_interval=window, hysteresis=hysteresis), **common)
        write_case("deepspeed", patient, Deepspeed(2.0**10, window, delayed_shift=hysteresis),
                   **common)
        write_case("deepspeed_consecutive", patient,
                   Deepspeed(2.0**10, window, delayed_shift=hysteresis,
                             consecutive_hysteresis=True), **common)
        write_case("paddle", patient,
                   Paddle(2.0**10, incr_every_n_steps=window, decr_every_n_nan_or_inf=hysteresis),
                   **common)


def write_factors():
    """Factors that round. Megatron's are given exact in float, the type of its products."""
    for seed, (up, down) in enumerate(((1.5, 0.75), (1.001, 0.7), (3.7, 0.1), (1.1, 0.999))):
        common = dict(seed=200 + seed, steps=300, interval=3, spread=(-2, 2))
        start = {"initial_scale": 1000.0, "growth_interval": 3}
        exact = {"growth_factor": f32(up), "backoff_factor": f32(down)}
        factors = {"growth_factor": up, "backoff_factor": down}
        write_case("pytorch", {**start, **factors}, Pytorch(1000.0, up, down, 3), **common)
        write_case("apex_hysteresis", {**start, **factors}, ApexHysteresis(1000.0, up, down, 3),
                   **common)
        write_case("megatron", {**start, **exact},
                   Megatron(1000.0, growth_interval=3, **exact), **common)
        write_case("paddle", {**start, **exact, "hysteresis": 2},
                   Paddle(1000.0, f32(up), f32(down), 3, 2), **common)


def write_bounds():
    """Runs that lean on the floor or on the ceiling."""
    low = dict(steps=300, interval=4, spread=(-12, -3), chance=0.1)
    high = dict(steps=300, interval=4, spread=(90, 91), chance=0.02)
    start = {"initial_scale": 8.0, "growth_interval": 4}
    write_case("apex_amp", {**start, "floor": 0.125}, ApexAmp(8.0, 4, min_loss_scale=0.125),
               seed=300, **low)
    write_case("apex_fp16_utils", start, ApexFp16Utils(8.0, scale_window=4), seed=301, **low)
    write_case("megatron", start, Megatron(8.0, growth_interval=4), seed=302, **low)
    write_case("megatron", {**start, "floor": 0.75}, Megatron(8.0, 0.75, growth_interval=4),
               seed=303, **low)
    write_case("deepspeed", {**start, "floor": 0.25}, Deepspeed(8.0, 4, min_scale=0.25), seed=304,
               **low)
    write_case("deepspeed_fused", start, DeepspeedFused(8.0, 4), seed=305, **low)
    write_case("jmp", {**start, "floor": 0.125}, Jmp(8.0, 4, min_loss_scale=0.125), seed=306, **low)
    write_case("paddle", start, Paddle(8.0, incr_every_n_steps=4), seed=307, **low)

    start = {"initial_scale": 2.0**20, "growth_interval": 4}
    write_case("apex_amp", start, ApexAmp(2.0**20, 4), seed=310, **high)
    write_case("mxnet", start, Mxnet(2.0**20, 4), seed=311, **high)


if __name__ == "__main__":
    print("# Generated by generate_loss_scale_traces.py, which describes the format.")
    write_presets()
    write_small_windows()
    write_factors()
    write_bounds()
