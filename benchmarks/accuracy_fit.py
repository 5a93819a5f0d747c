"""Where the coefficients in csrc/codegen/prelude/ come from.

Each is the near-minimax polynomial (Lawson's reweighted least squares) of a function on an interval
for relative error of the whole result, with the coefficients rounded to float one by one, the rest
fitted again after each. Prints lines to paste into the prelude.

    python benchmarks/accuracy_fit.py
"""

import mpmath
import numpy

mpmath.mp.dps = 40


def fit(target, weight, degree, low, high, points=1500, rounds=60):
    """Coefficients c0 ... of the polynomial that minimises max |weight * (p - target)|."""
    angle = numpy.pi * (numpy.arange(points) + 0.5) / points
    at = (low + high) / 2 + (high - low) / 2 * numpy.cos(angle)
    values = numpy.array([float(target(mpmath.mpf(float(x)))) for x in at])
    scale = numpy.array([float(weight(mpmath.mpf(float(x)))) for x in at])
    basis = at[:, None] ** numpy.arange(degree + 1)
    fixed = []
    while len(fixed) <= degree:
        first = len(fixed)
        rest = values - (basis[:, :first] @ numpy.array(fixed) if fixed else 0)
        lawson = numpy.full(points, 1.0 / points)
        for _ in range(rounds):
            rows = (scale * numpy.sqrt(lawson))[:, None]
            free, *_ = numpy.linalg.lstsq(basis[:, first:] * rows, rest * rows[:, 0], rcond=None)
            error = numpy.abs(scale * (basis[:, first:] @ free - rest))
            if error.max() == 0:
                break
            lawson = lawson * error
            lawson /= lawson.sum()
        fixed.append(float(numpy.float32(free[0])))
    error = numpy.abs(scale * (basis @ numpy.array(fixed) - values)).max()
    return fixed, error


def show(name, target, weight, degree, low, high):
    coefficients, error = fit(target, weight, degree, low, high)
    print(f"{name}: relative error 2^{numpy.log2(error):.1f}")
    print("  " + ", ".join(f"{c.hex()}  /* {c:.9g} */" for c in coefficients))


def main():
    exp, log, erf = mpmath.exp, mpmath.log, mpmath.erf
    half_ln2 = float(mpmath.log(2) / 2)

    # exp(r) = 1 + r + r^2 q(r)
    show("exp", lambda r: (exp(r) - 1 - r) / r**2, lambda r: r**2 / exp(r), 4, -half_ln2, half_ln2)
    # expm1(r) = r + r^2 q(r)
    show(
        "expm1",
        lambda r: (exp(r) - 1 - r) / r**2,
        lambda r: r**2 / (exp(r) - 1),
        5,
        -half_ln2,
        half_ln2,
    )
    # 2^r = 1 + r q(r)
    show(
        "exp2",
        lambda r: (mpmath.mpf(2) ** r - 1) / r,
        lambda r: r / mpmath.mpf(2) ** r,
        5,
        -0.5,
        0.5,
    )
    # log(1 + f) = f - f^2 / 2 + f^3 q(f)
    show(
        "log",
        lambda f: (mpmath.log1p(f) - f + f**2 / 2) / f**3,
        lambda f: f**3 / mpmath.log1p(f),
        8,
        -1 / 3,
        1 / 3,
    )
    # tanh(x) = x + x z q(z), z = x^2
    show(
        "tanh",
        lambda z: (mpmath.tanh(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z,
        lambda z: z * mpmath.sqrt(z) / mpmath.tanh(mpmath.sqrt(z)),
        5,
        1e-12,
        0.625**2,
    )
    # erf(x) = x + x q(z), z = x^2
    show(
        "erf, small",
        lambda z: erf(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1,
        lambda z: mpmath.sqrt(z) / erf(mpmath.sqrt(z)),
        6,
        1e-12,
        0.93**2,
    )
    # erf(x) = 1 - exp(-t - t q(t)); the error of erf from an error d of the exponent is d * erfc
    show(
        "erf, large",
        lambda t: -log(mpmath.erfc(t)) / t - 1,
        lambda t: t * mpmath.erfc(t) / erf(t),
        7,
        0.92,
        4.0,
    )
    # sin(r) = r + r z q(z), cos(r) = 1 - z / 2 + z^2 q(z)
    quarter = float(mpmath.pi / 4) * 1.001
    show(
        "sin",
        lambda z: (mpmath.sin(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z,
        lambda z: z * mpmath.sqrt(z) / mpmath.sin(mpmath.sqrt(z)),
        3,
        1e-12,
        quarter**2,
    )
    show(
        "cos",
        lambda z: (mpmath.cos(mpmath.sqrt(z)) - 1 + z / 2) / z**2,
        lambda z: z**2 / mpmath.cos(mpmath.sqrt(z)),
        2,
        1e-8,
        quarter**2,
    )


if __name__ == "__main__":
    main()
