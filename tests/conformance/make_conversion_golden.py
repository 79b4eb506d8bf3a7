#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes conversion_golden.txt: what ml_dtypes and NumPy make of every code and rounding boundary.

    pip install numpy ml_dtypes
    python3 make_conversion_golden.py > conversion_golden.txt

Each other line is `direction format block hash`. A block is 256 consecutive codes of a 16-bit format, 16
of an 8-bit one. `to_float` hashes the float32 bits of each code. `from_float` hashes, for each code,
the codes that four floats round to: the code's value, the midpoint between it and the next larger
magnitude, and the floats just below and above that midpoint; all with the sign of the code. The
magnitude after the largest finite one is the one that the format would have if it went on. Codes of
infinities and NaN are converted back as they are. Every NaN counts as the positive quiet one, since
libraries differ in the payload. The hash is 64-bit FNV-1a over little-endian results.
"""

import ml_dtypes
import numpy as np

FORMATS = {
    "float16": (np.float16, 16, 5, 10, True),
    "bfloat16": (ml_dtypes.bfloat16, 16, 8, 7, True),
    "float8_e4m3": (ml_dtypes.float8_e4m3fn, 8, 4, 3, False),
    "float8_e5m2": (ml_dtypes.float8_e5m2, 8, 5, 2, True),
}


def fnv(array):
    value = 0xCBF29CE484222325
    for byte in array.tobytes():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def canonical(bits, is_nan, quiet):
    return np.where(is_nan, np.array(quiet, dtype=bits.dtype), bits)


def main():
    np.seterr(all="ignore")
    print(f"# ml_dtypes {ml_dtypes.__version__}, NumPy {np.__version__}")
    for name, (number, bits, exponent_bits, mantissa_bits, has_infinity) in FORMATS.items():
        unsigned = np.uint16 if bits == 16 else np.uint8
        codes = np.arange(1 << bits, dtype=np.uint32).astype(unsigned)
        values = codes.view(number).astype(np.float32)
        sign = 1 << (bits - 1)
        exponent_mask = ((1 << exponent_bits) - 1) << mantissa_bits
        last = exponent_mask - 1 if has_infinity else sign - 2
        quiet = exponent_mask | 1 << (mantissa_bits - 1) if has_infinity else sign - 1

        to_float = canonical(values.view(np.uint32), np.isnan(values), 0x7FC00000)

        magnitudes = (codes & (sign - 1)).astype(np.int64)
        finite = magnitudes <= last
        low = np.abs(values.astype(np.float64))
        step = np.ldexp(1.0, np.maximum(magnitudes >> mantissa_bits, 1)
                        - ((1 << (exponent_bits - 1)) - 1) - mantissa_bits)
        middle = np.where(finite, low + step / 2, low).astype(np.float32)
        inputs = np.stack([
            low.astype(np.float32),
            middle,
            np.where(finite, np.nextafter(middle, np.float32(0)), middle),
            np.where(finite, np.nextafter(middle, np.float32(np.inf)), middle),
        ], axis=1).astype(np.float32)
        negative = np.broadcast_to((codes & sign)[:, None] != 0, inputs.shape)
        inputs = np.where(negative, -inputs, inputs)
        rounded = inputs.astype(number)
        is_nan = np.isnan(rounded.astype(np.float32))
        from_float = canonical(rounded.view(unsigned), is_nan, quiet)

        block = 256 if bits == 16 else 16
        for start in range(0, len(codes), block):
            part = slice(start, start + block)
            print(f"to_float {name} {start // block} {fnv(to_float[part].astype('<u4')):016x}")
        for start in range(0, len(codes), block):
            part = slice(start, start + block)
            hashed = from_float[part].astype(f"<u{bits // 8}")
            print(f"from_float {name} {start // block} {fnv(hashed):016x}")


if __name__ == "__main__":
    main()
