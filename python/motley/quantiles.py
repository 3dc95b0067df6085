"""Normal and exponential numbers from uniform 32-bit words, with the same bits as in a worker (models/numbers/random_numbers.h).

A word w represents the probability (w + 1/2) / 2^32, and its number is the quantile of that probability. Each operation is
an IEEE double operation that rounds once; library logarithms would differ in the last bit. The result is rounded to float32.
"""

from __future__ import annotations

from typing import Any, Tuple

import numpy

# M. J. Wichura, "Algorithm AS 241: The percentage points of the normal distribution", Applied Statistics 37 (1988), PPND16. Its
# third range begins at a probability of e^-25, below that of any word.
_MIDDLE = ((2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4, 4.5921953931549871457e+4,
            1.3731693765509461125e+4, 1.9715909503065514427e+3, 1.3314166789178437745e+2, 3.3871328727963666080e+0),
           (5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4, 2.1213794301586595867e+4,
            5.3941960214247511077e+3, 6.8718700749205790830e+2, 4.2313330701600911252e+1, 1.0))
_TAIL = ((7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e+0,
          3.64784832476320460504e+0, 5.76949722146069140550e+0, 4.63033784615654529590e+0, 1.42343711074968357734e+0),
         (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
          6.89767334985100004550e-1, 1.67638483018380384940e+0, 2.05319162663775882187e+0, 1.0))


def log(x: Any) -> Any:
    """The logarithm of doubles from 0 to 1, as in models/numbers/portable_log.h."""
    mantissa, exponent = numpy.frexp(x)
    small = mantissa < 0.7071067811865476
    mantissa = numpy.where(small, mantissa * 2.0, mantissa)
    exponent = exponent - small
    t = (mantissa - 1.0) / (mantissa + 1.0)
    t2 = t * t
    series = numpy.zeros_like(t)
    for k in range(21, 0, -2):
        series = series * t2 + 1.0 / k
    return 2.0 * t * series + exponent * 0.6931471805599453


def _quotient(polynomials: Tuple[Tuple[float, ...], Tuple[float, ...]], x: Any) -> Any:
    above, below = (numpy.full_like(x, polynomial[0]) for polynomial in polynomials)
    for a, b in zip(polynomials[0][1:], polynomials[1][1:]):
        above = above * x + a
        below = below * x + b
    return above / below


def _probability(words: Any) -> Any:
    return (words.astype(numpy.float64) + 0.5) * 2.0 ** -32


def normal(words: Any) -> Any:
    """Standard normal numbers as float32: absolute values from 2.92e-10 to 6.338, symmetric in sign."""
    p = _probability(words)
    q = p - 0.5
    middle = q * _quotient(_MIDDLE, 0.180625 - q * q)
    tail = _quotient(_TAIL, numpy.sqrt(-log(numpy.minimum(p, 1.0 - p))) - 1.6)
    return numpy.where(numpy.abs(q) <= 0.425, middle, numpy.where(q < 0, -tail, tail)).astype(numpy.float32)


def exponential(words: Any) -> Any:
    """Exponential numbers of rate 1 as float32, from 1.16e-10 to 22.87."""
    return (-log(_probability(words))).astype(numpy.float32)
