"""Convolutions of PyTorch.

All outputs of one position together take a multiply-add per element of the weight, whatever the groups; a multiply-add
is two operations (torch.utils.flop_counter, conv_flop_count, counts the same). A bias and an activation behind it are
not counted. Output sizes are those of the documentation of torch.nn.Conv2d.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from stepscope.analysis.costs.call import Cost, CostKind, OpCall, Shape

Formula = Callable[[OpCall], Cost | None]


def forward(stride: int, padding: int, dilation: int, *, biased: bool = True) -> Formula:
    """A convolution (input [N, C, ...], weight [K, C/groups, ...], a bias where ``biased``), its scalars at these
    places. Where the stride skips some of the input, that is not moved.
    """

    def formula(call: OpCall) -> Cost | None:
        image, weight = call.shape(0), call.shape(1)
        if image is None or weight is None or len(image) != len(weight) or len(image) < 3:
            return None
        spatial = _output_size(call, image[2:], weight[2:], (stride, padding, dilation))
        if spatial is None:
            return None
        flops = 2 * image[0] * prod(spatial) * prod(weight)
        weights, size = call.bytes(1), call.size(0)
        if weights is None or size is None:
            return Cost(CostKind.CONVOLUTION, flops, None)
        read = prod(min(all_, out * taps) for all_, out, taps in zip(image[2:], spatial, weight[2:], strict=True))
        moved = image[0] * (image[1] * read + weight[0] * prod(spatial)) * size + weights
        return Cost(CostKind.CONVOLUTION, flops, moved + (call.present(2) if biased else 0))

    return formula


def _output_size(call: OpCall, image: Shape, taps: Shape, places: tuple[int, int, int]) -> Shape | None:
    """Spatial sizes of the output; a single scalar holds for all dimensions. None where a scalar is not recorded."""
    scalars = []
    for place in places:
        given = call.integers(place)
        if not given or len(given) not in (1, len(image)):
            return None
        scalars.append(given * len(image) if len(given) == 1 else given)
    strides, paddings, dilations = scalars
    if min(strides) < 1:
        return None
    sizes = tuple(
        (image[at] + 2 * paddings[at] - dilations[at] * (taps[at] - 1) - 1) // strides[at] + 1
        for at in range(len(image))
    )
    return sizes if min(sizes) > 0 else None


def transposed(call: OpCall) -> Cost | None:
    """A transposed convolution (input [N, C, ...], weight [C, K/groups, ...]): a multiply-add per element of the weight
    at each position of the input. Its output's size is not worked out, so bytes are None.
    """
    image, weight = call.shape(0), call.shape(1)
    if image is None or weight is None or len(image) != len(weight) or len(image) < 3:
        return None
    return Cost(CostKind.CONVOLUTION, 2 * image[0] * prod(image[2:]) * prod(weight), None)


def general(call: OpCall) -> Cost | None:
    """``convolution`` and kin: (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)."""
    turned = call.flag(6)
    if turned is None:
        return None
    return transposed(call) if turned else forward(3, 4, 5)(call)


def backward(is_transposed: int, output_mask: int) -> Formula:
    """Both gradients at once: (grad_output, input, weight, ...), with two flags at these places.

    The gradients of the input and of the weight each take as many multiply-adds as the convolution itself
    (torch.utils.flop_counter, conv_backward_flop); the bias's gradient, a sum, is not counted.
    """

    def formula(call: OpCall) -> Cost | None:
        grad, image, weight = (call.shape(at) for at in range(3))
        turned, mask = call.flag(is_transposed), call.value(output_mask)
        if grad is None or image is None or weight is None or turned is None:
            return None
        if not isinstance(mask, list) or len(mask) < 2 or not all(isinstance(one, bool) for one in mask):
            return None
        once = 2 * grad[0] * prod((image if turned else grad)[2:]) * prod(weight)
        whole, both = call.bytes(0), call.bytes(1, 2)
        moved = None if whole is None or both is None else whole + both * (mask[0] + mask[1])
        return Cost(CostKind.CONVOLUTION, once * (mask[0] + mask[1]), moved)

    return formula


def backward_input(call: OpCall) -> Cost | None:
    """``cudnn_convolution_backward_input`` (PyTorch before 1.11): (input size, grad_output, weight, ...)."""
    grad, weight = call.shape(1), call.shape(2)
    return None if grad is None or weight is None else _one_gradient(grad, weight)


def backward_weight(call: OpCall) -> Cost | None:
    """``cudnn_convolution_backward_weight`` (PyTorch before 1.11): (weight size, grad_output, input, ...)."""
    grad, weight = call.shape(1), call.integers(0)
    return None if grad is None or weight is None else _one_gradient(grad, weight)


def _one_gradient(grad: Shape, weight: Shape) -> Cost | None:
    if len(grad) != len(weight) or len(grad) < 3:
        return None
    return Cost(CostKind.CONVOLUTION, 2 * grad[0] * prod(grad[2:]) * prod(weight), None)


_ATEN = forward(3, 4, 5)
_LIBRARY = forward(4, 3, 5)
CONVOLUTIONS: dict[str, Formula] = {
    **dict.fromkeys(("aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::cudnn_convolution_relu"), _ATEN),
    **dict.fromkeys(("aten::convolution", "aten::_convolution", "aten::convolution_overrideable"), general),
    "aten::cudnn_convolution": forward(3, 2, 4, biased=False),
    "aten::cudnn_convolution_add_relu": forward(5, 6, 7, biased=False),
    **dict.fromkeys(("aten::miopen_convolution", "aten::miopen_depthwise_convolution"), _LIBRARY),
    "aten::mkldnn_convolution": _LIBRARY,
    "aten::_conv_depthwise2d": forward(4, 5, 6, biased=False),
    **dict.fromkeys(("aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d"), transposed),
    **dict.fromkeys(("aten::cudnn_convolution_transpose", "aten::miopen_convolution_transpose"), transposed),
    "aten::convolution_backward": backward(7, 10),
    "aten::convolution_backward_overrideable": backward(6, 9),
    "aten::cudnn_convolution_backward_input": backward_input,
    "aten::cudnn_convolution_backward_weight": backward_weight,
}
