"""What a user knows of f, as the model takes it."""

from __future__ import annotations

import math

from partita._checks import check_scale
from partita.errors import InvalidInput
from partita.gp.settings import Fixed
from partita.model.domains import Arms, Box, Grid
from partita.model.kernels import Matern
from partita.model.mixed import Mixed
from partita.model.noise import Noise, sub_gaussian_constant
from partita.policies.checks import check_kernel


def as_fixed(
    domain: Grid | Arms | Box | Mixed,
    kernel: Matern | None,
    noise: Noise | None,
    norm_bound: float | None,
) -> Fixed:
    """Kernel, noise and norm bound as settings that are not estimated."""
    scales = form = std = amplitude = None
    if kernel is not None:
        checked = check_kernel(kernel, domain)
        if checked.nu not in (1.5, 2.5):
            raise InvalidInput(f"kernel={kernel!r}: CalibratedUCB takes nu=1.5 or nu=2.5.")
        scales, form = checked.scales(domain.dim), checked.closed_form
    if noise is not None:
        std = check_scale("noise constant", sub_gaussian_constant(noise))
    if norm_bound is not None:
        amplitude = check_scale("norm_bound", norm_bound) / math.sqrt(20 * domain.dim)
    return Fixed(scales, form, std, amplitude)
