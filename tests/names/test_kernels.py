"""Kernel names of every generation of the libraries, and what they must be read as."""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from functools import cache
from typing import Any

import pytest

from stepscope.names.kernels import Collective, Family, Precision, Tri, describe, op_precision
from tests.kit.traces import real_trace

F, P, C = Family, Precision, Collective
YES, NO, UNKNOWN = Tri.YES, Tri.NO, Tri.UNKNOWN


def _table(columns: int, text: str) -> list[list[str]]:
    """Rows of a table written as text: some columns ("-" for None), then a name, which may hold spaces."""
    return [line.split(None, columns) for line in text.splitlines() if line and not line.startswith("#")]


PRODUCTS = _table(
    3,
    """
# family       tensor   format
# cuBLAS and cuDNN: the MMA shape decides; without one the math letter names the FMA units' format.
gemm           no       fp32  volta_sgemm_128x32_tn
gemm           no       fp32  maxwell_sgemm_64x64_nn
gemm           no       fp64  volta_dgemm_64x64_nn
gemm           no       fp16  maxwell_hgemm_128x64_tn
gemm           no       fp32  ampere_gcgemm_64x64_nt
gemm           no       fp32  ampere_cgemm_64x64_nn
gemm           no       fp64  ampere_zgemm_64x64_nn
gemm           yes      int8  ampere_i16832gemm_128x128_nt
gemm           yes      int8  void cutlass::Kernel<cutlass_80_tensorop_s8_i16832gemm_s8_128x128_tn>(P)
gemm           no       fp16  turing_fp16_sgemm_fp16_128x64_tn
gemm           yes      fp16  volta_h884gemm_256x64_ldg8_nn
gemm           yes      fp16  volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn
gemm           yes      fp16  volta_s884gemm_128x128_tn
gemm           yes      fp16  turing_h1688gemm_128x128_ldg8_stages_32x1_nn
gemm           yes      bf16  ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn
gemm           yes      tf32  ampere_s1688gemm_128x128_ldg4_relu_stages_16x4_tn
gemm           yes      -     turing_s1688gemm_128x128_tn
gemm           yes      int8  ampere_i16832gemm_int8_128x128_ldg16_relu_stages_64x3_tn
gemm           yes      fp64  ampere_d884gemm_64x64_nt
gemm           no       fp32  void gemmSN_TN_kernel<float, 128, 16, 2, 4, 10, 11, false>(float const*)
gemm           no       fp32  void magma_sgemmEx_kernel<float, float, float, true, false, 6>(int)
gemm           no       fp64  void gemm_kernel2x2_core<double, 128, 16>(double*)
gemm           no       fp32  void sgemm_largek_lds64<true, true, 6, 3>(float*, int)
convolution    no       fp32  volta_scudnn_128x64_relu_interior_nn_v1
convolution    no       fp32  volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1
convolution    yes      fp16  volta_fp16_s884cudnn_fp16_256x64_ldg8_relu_f2f_exp_small_nhwc_tn_v1
convolution    no       fp32  void cudnn::winograd::winograd3x3Kernel<float, 1, 4, 8>(float*)
convolution    no       fp32  void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3>(int, float const*)
convolution    no       fp16  void implicit_convolve_sgemm<__half, float, 128, 6>(int, __half const*)
convolution    unknown  -     void cudnn::cnn::conv2d_grouped_direct_kernel<false>(P)
# xmma spells operand types, then the instruction shape, the warp group or the FMA unit.
convolution    yes      tf32  sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_tensor16x8x8
gemm           no       fp32  sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_ffma_execute_kernel
gemm           yes      fp64  sm80_xmma_gemm_f64f64_f64f64_f64_tn_n_tilesize64x64x16_tensor8x8x4_kernel
gemm           yes      bf16  sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_warpgroupsize1x1x1_kernel
gemm           yes      fp8   sm90_xmma_gemm_e5m2e4m3_bf16f32_f32_tn_n_warpgroupsize1x1x1_kernel
gemm           yes      fp8   sm90_xmma_gemm_e4m3e5m2_e4m3f32_f32_tn_n_warpgroupsize1x1x1_kernel
gemm           yes      int8  sm80_xmma_gemm_i8i32_i8i32_i32_tn_n_tilesize64x64x64_tensor16x8x32_kernel
gemm           yes      -     void xmma_cudnn::gemm::kernel<Traits<Ampere_hmma_fp32_traits>>(P)
gemm           yes      fp4   sm100_xmma_fp4_grouped_gemm
# nvjet: letters of the operands, accumulator and output.
gemm           yes      bf16  nvjet_tst_64x64_64x16_2x1_2cta_v_bz_bias_TNT
gemm           yes      fp16  nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT
gemm           yes      fp16  nvjet_sm90_hss_320x128
gemm           yes      fp8   nvjet_rqtst_128x256_128x6_2x1_v_bz_TNT
gemm           yes      fp8   nvjet_qqtst_128x256_128x6_2x1_2cta_v_bz_TNT
gemm           yes      fp4   nvjet_ootst_128x128_256x4_Avec16UE4M3_Bvec16UE4M3_TNT
gemm           yes      tf32  nvjet_sss_tf32_128x256_TNT
# CUTLASS 2 and 3.
gemm           yes      tf32  void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_32x5_tn>(P)
gemm           yes      bf16  void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16>(P)
gemm           no       fp32  void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(P)
convolution    yes      fp16  void cutlass__5x_cudnn::Kernel<cutlass_tensorop_f16_s16816fprop>(P)
gemm           yes      fp16  cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_128x128x64
gemm           yes      fp8   void cutlass::device_kernel<GemmUniversal<cute::tuple<int, int, int>, \
CollectiveMma<MainloopSm90TmaGmmaWarpSpecialized<4>, cutlass::float_e4m3_t, cutlass::float_e5m2_t>, \
float>>(P)
gemm           yes      bf16  void cutlass::device_kernel<GemmUniversal<\
cute::SM90_64x128x16_F32BF16BF16_SS<1>, float>>(P)
gemm           no       fp16  void cutlass::Kernel<Gemm<OpClassSimt, cutlass::half_t>>(P)
gemm           yes      -     cutlass_moe_mm_sm100
# Generated and hand-written kernels of inference engines.
gemm           yes      fp4   bmm_E2m1_E2m1E2m1_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_sm100f
gemm           yes      fp8   bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_m128x16x32_sm100f
gemm           yes      fp8   void deep_gemm::sm90_fp8_gemm_1d2d_impl<128u>(float*)
gemm           yes      bf16  void marlin::Marlin<__nv_bfloat16, 256, 1>(int4 const*)
gemm           yes      -     fused_moe_kernel
gemm           yes      bf16  _matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu
gemm           yes      fp8   _w8a8_block_fp8_matmul
gemm           yes      bf16  gemm_Bfloat16_Bfloat16Bfloat16_Fp32_t128x8x128u2_s4_sm100a
gemm           yes      bf16  void deep_gemm::sm90_bf16_gemm_impl<128u, __nv_bfloat16>(P)
gemm           yes      fp16  void machete::device_gemm<cutlass::half_t>(P)
gemm           yes      -     machete_prepack_mm_kernel
gemm           yes      fp16  umma_gemm_2sm_f16
gemm           yes      bf16  gemm_tcgen05_bf16_kernel
gemm           yes      fp16  rocwmma_gemm_f16
gemm           yes      fp16  void gemm_gmma_kernel<__half>(P)
gemm           yes      fp16  void cutlass::device_kernel<GemmUniversal<MainloopSm100TmaUni<2>, half_t>>(P)
gemm           yes      fp16  void cutlass::Kernel<Gemm<OpClassTensorOp, cutlass::half_t>>(P)
gemm           unknown  int8  int8_scaled_mm
gemm           unknown  -     some_matmul_kernel
gemm           unknown  -     gemm_fusion_dot_3
convolution    unknown  fp32  void cudnn::cnn::dgrad2d_alg1_1<float, 0, 6, 7>(int)
# Attention.
attention      yes      bf16  void pytorch_flash::flash_fwd_kernel<Traits<64, cutlass::bfloat16_t>>(P)
attention      yes      fp16  fmha_cutlassF_f16_aligned_64x64_rf_sm80(AttentionKernel::Params)
attention      no       fp32  fmha_cutlassF_f32_aligned_64x64_rf_sm75(AttentionKernel::Params)
attention      no       fp16  fmha_cutlassB_f16_aligned_64x64_k64_sm50(AttentionKernel::Params)
attention      yes      fp8   fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16
attention      yes      bf16  fmhaSm100fKernel_QBfloat16KvE4m3OBfloat16H128PagedKv
attention      yes      -     cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7
attention      yes      bf16  kernel_cutlass_kernel_flash_attncuteflash_fwd\
_sm100FlashAttentionForwardSm100__tensorptrbf16gmem
attention      yes      fp16  void cutlass::device_kernel<flash::FlashAttnFwdSm90<cutlass::half_t>>(P)
attention      yes      bf16  void flashinfer::BatchPrefillWithPagedKVCacheKernel<__nv_bfloat16>(P)
attention      no       fp16  void flashinfer::BatchDecodeWithPagedKVCacheKernel<__half>(P)
attention      no       fp32  void vllm::paged_attention_v2_kernel<float, 128>(float*)
attention      yes      bf16  void paged_attention_ll4mi_QKV_mfma16_kernel<__hip_bfloat16>(P)
attention      unknown  -     paged_attn_decode
attention      unknown  -     mla_decode_stage1
attention      yes      -     _attn_fwd
attention      yes      -     triton_tem_fused_flex_attention_0
gemm           yes      -     triton_tem_fused_addmm_relu_2
convolution    yes      -     triton_tem_fused_convolution_1
# AMD: Tensile's type letters and MFMA, MIOpen, Composable Kernel.
gemm           yes      bf16  Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1
gemm           yes      fp16  Cijk_Ailk_Bjlk_HHS_BH_MT64x64x64_MI16x16x16x1_SN
gemm           no       fp16  Cijk_Ailk_Bljk_HB_MT128x64x16_SE_K1
gemm           yes      fp32  Cijk_Ailk_Bljk_SB_MT128x64x16_MI32x32x1_SE_K1
gemm           yes      fp8   Cijk_Alik_Bljk_F8BS_BH_MT128x128x128_MI16x16x1_SN
gemm           yes      tf32  Custom_Cijk_Alik_Bljk_S_MX_B_UserArgs_MT128x160x64_MI16x16x1_SN
gemm           yes      fp8   Cijk_Alik_Bljk_B8F8HS_BH_MT128x128x128_MI16x16x1_SN
gemm           yes      fp4   Cijk_Alik_Bljk_F4BS_BH_MT256x256x128_MI16x16x1_SN
gemm           yes      int8  Cijk_Alik_Bljk_I8II_BH_MT128x128x64_MI16x16x1_SN
gemm           yes      int8  Cijk_Ailk_Bljk_4xi8BH_MT64x64x32_MI16x16x16x1_SN
gemm           no       fp32  Cijk_Ailk_Bjlk_CB_MT32x32x8_SN
gemm           no       fp64  Cijk_Ailk_Bjlk_ZB_MT32x32x8_SN
gemm           yes      fp64  Cijk_Ailk_Bljk_DB_MT64x32x16_MI16x16x4x1_SN
convolution    yes      bf16  igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt64x128x32_wt32x32x8
convolution    no       fp32  igemm_v4r1_dynamic_fp32
convolution    no       fp32  miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride1
convolution    no       fp32  naive_conv_ab_nonpacked_wrw_nchw_float_double_float
convolution    no       fp16  naive_conv_ab_nonpacked_fwd_nchw_half_double_half
convolution    yes      bf16  _ZN2ck39kernel_grouped_conv_fwd_xdl_cshuffle_v3INS_4GemmES7_ttfttNS0_E
convolution    yes      bf16  _ZN2ck37kernel_batched_gemm_xdlops_bwd_weightINS_8GridwiseILi64EttftLE
convolution    no       -     miopenGcnAsmConv1x1U
convolution    no       -     MIOpenConvUni
convolution    no       fp16  gridwise_convolution_forward_dlops_v5r1_f16
gemm           no       fp16  _ZN2ck4impl27kernel_gemm_dl_multiple_d_vIDF16_DF16_fE
attention      yes      bf16  _ZN7ck_tile6kentryILi1ENS_13FmhaFwdKernelIDF16bDF16bfEEEvv
gemm           yes      -     mfma_moe1_silu_mul_afp8_wfp4
""",
)


@pytest.mark.parametrize(("family", "tensor_core", "precision", "name"), PRODUCTS, ids=lambda v: v[:60])
def test_kernels_that_multiply_matrices(family: str, tensor_core: str, precision: str, name: str) -> None:
    traits = describe(name)
    assert (traits.family, traits.tensor_core, traits.precision or "-") == (family, tensor_core, precision)
    assert traits.eligible
    assert traits.collective is None


OTHERS = _table(
    2,
    """
# family       format
# Helpers that carry the name of the product they serve, and vector products.
gemm           fp32     void splitKreduce_kernel<float, float, float, float>(cublasSplitKParams<float>)
gemm           fp16     std::enable_if<!(false), void>::type internal::gemvx::kernel<int, __half>(P)
gemm           fp32     void gemmk1_kernel<float, 256, 5>(P)
gemm           fp32     void dot_kernel<float, 128, 0>(P)
gemm           -        Cijk_SS_BiasS_HAS_ScaleAlphaVec_PostGSU4_VW2
gemm           fp32     void epilogue::impl::globalKernel<float, float>(int)
convolution    fp32     void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(P)
convolution    -        void cask_cudnn::computeOffsetsKernel<false, false>(P)
convolution    fp32     void at::native::im2col_kernel<float>(long, float const*)
convolution    fp16     void at::native::conv_depthwise2d_forward_kernel<3, c10::Half>(P)
attention      fp16     void flash_bwd_dot_do_o_kernel<true, Traits<64, cutlass::half_t>>(P)
attention      fp16     void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<cutlass::half_t>>(P)
attention      bf16     void vllm::merge_attn_states_kernel<__nv_bfloat16>(P)
attention      -        flash_bwd_convert_dq_kernel
attention      -        flash_fwd_splitkv_combine_kernel
attention      fp16     void cutlass::device_kernel<flash::FlashAttnFwdCombine<cutlass::half_t>>(P)
attention      -        kn_mla_reduce_v1
attention      fp32     void vllm::paged_attention_v2_reduce_kernel<float>(P)
attention      -        reduce_segments
convolution    fp32     void cudnn::winograd::generateWinogradTilesKernel<0, float, float>(P)
convolution    fp32     void fft2d_r2c_32x32<float, false, 5u, true>(float2*)
convolution    fp32     void cudnn::ops::scalePackedTensor_kernel<float, float>(P)
convolution    fp32     void at::native::col2im_kernel<float, float>(P)
convolution    fp32     void at::native::vol2col_kernel<float>(P)
gemm           fp32     void cublasLt::reduceSplitKernel_splitk_reduce<float>(P)
gemm           fp32     void reduce_splitK_partials<float>(P)
sort_index     bf16     void moe::dev::routing::routingIndicesKernel<KernelParams<__nv_bfloat16>>(P)
sort_index     bf16     void moe::dev::finalize::finalizeKernelVecLoad<Params<cutlass::bfloat16_t>>(P)
# PyTorch: the functor tells what one elementwise kernel does, and its own parameters are not the data.
copy_kernel    fp32     void at::native::elementwise_kernel<128, 2, direct_copy_kernel_cuda\
(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda(float)#1}>(int)
elementwise    fp16     void at::native::vectorized_elementwise_kernel<4, nan_to_num_kernel_cuda\
(at::TensorIteratorBase&, c10::optional<double>)::{lambda()#1}::{lambda(c10::Half)#1}>(int)
elementwise    -        void at::native::vectorized_elementwise_kernel<4, FillFunctor<int>>(int)
elementwise    bf16     void at::native::vectorized_elementwise_kernel<4, \
AddFunctor<c10::BFloat16>>(int, float)
elementwise    -        void elementwise_kernel_with_index<int, arange_cuda_out>(P)
optimizer      fp32     void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4>>(P)
optimizer      fp32     void (anonymous namespace)::multi_tensor_apply_kernel<LAMBStage1Functor<float>>(P)
optimizer      fp32     void multi_tensor_apply_kernel<FusedSgdMathFunctor<float>>(P)
optimizer      fp32     void multi_tensor_apply_kernel<FusedAdagradFunctor<float>>(P)
copy_kernel    fp32     void (anonymous namespace)::multi_tensor_apply_kernel<CopyFunctor<float>>(P)
copy_kernel    fp32     void at::native::unrolled_elementwise_kernel\
<copy_device_to_device(bool)::{lambda(float)#1}>(P)
random         fp32     void kernelPointwiseApply2<bernoulli_tensor_cuda_kernel<float>>(P)
elementwise    fp32     void at::native::multi_tensor_apply_kernel<BinaryOpScalarFunctor<float, 2>>(P)
random         fp32     void at::native::fused_dropout_kernel_vec<float, float, unsigned int>(P)
copy_kernel    -        void at::native::CatArrayBatchedCopy<OpaqueType<2u>, unsigned int, 4>(P)
reduction      fp16     void at::native::reduce_kernel<512, 1, ReduceOp<c10::Half, func_wrapper_t<float>>>(P)
softmax        bf16     void softmax_warp_forward<c10::BFloat16, float, float, 10, true>(P)
normalization  bf16     void at::native::vectorized_layer_norm_kernel<c10::BFloat16, float>(P)
normalization  fp32     void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(P)
normalization  fp32     void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<float, float>(P)
other          fp32     void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>(P)
other          -        at::cuda::(anonymous namespace)::spin_kernel(long)
sort_index     fp32     void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long>(P)
sort_index     -        void cub::DeviceRadixSortOnesweepKernel<Policy<long, int>>(P)
reduction      fp32     void cunn_ClassNLLCriterion_updateOutput_kernel<float, float>(float*)
unknown        fp32     void at::native::(anonymous namespace)::compute_grad_weight<float>(P)
normalization  fp32     void at::native::GammaBetaBackwardCUDAKernel<float, float>(P)
optimizer      -        _fused_adamw_kernel
optimizer      fp32     void kOptimizerStatic8bit2StateBlockwise<float>(P)
sort_index     fp32     void at::native::bitonicSortKVInPlace<2, -1, 16, float>(P)
sort_index     -        void cub::DeviceScanKernel<cub::AgentScanPolicy<128, 15, int>>(P)
sort_index     -        void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*)
sort_index     fp32     void at::native::_scatter_elementwise_kernel<128, 4, float>(P)
sort_index     fp32     void cub::DeviceHistogramSweepKernel<float>(P)
sort_index     fp16     void radixFindKthValues<c10::Half>(P)
sort_index     -        void cub::DeviceCompactInitKernel<int>(P)
sort_index     -        void cub::DeviceReduceByKeyKernel<long*>(P)
sort_index     -        _chunk_cumsum_fwd_kernel
sort_index     -        void bounds_check_indices_kernel<long>(P)
sort_index     -        void fbgemm_gpu::_offsets_range_cuda_kernel<int>(long, int const*)
sort_index     -        void compute_cuda_kernel<long>(long*, long*)
embedding      fp32     void permute_pooled_embs_kernel<float>(float const*)
random         fp32     void distribution_elementwise_grid_stride_kernel<float, 4>(P)
random         -        void randperm_handle_duplicate_keys_kernel<int>(int*)
reduction      -        _sum_bitmatrix_rows
reduction      fp32     void ctc_loss_log_alpha_gpu_kernel<float, long>(float*)
reduction      fp16     void reduce_scaled(float, c10::Half const*)
copy_kernel    -        void fbgemm_gpu::permute_indices_weights_kernel<false, int>(int const*)
elementwise    fp32     void fbgemm_gpu::_get_FP8_qparam_cuda_kernel<float>(float const*)
elementwise    fp32     void fbgemm_gpu::_FP8rowwise_to_float_cuda_kernel<float>(unsigned char const*)
elementwise    fp16     void elemWiseRNNcell<__half, __half>(P)
elementwise    fp16     void vllm::act_and_mul_kernel<c10::Half>(P)
elementwise    -        _silu_mul_fwd
elementwise    -        _gelu_fwd
elementwise    -        _relu_squared_fwd
elementwise    -        _swiglu_fwd_kernel
elementwise    -        _apply_rope_kernel
elementwise    -        _fill_padding
elementwise    fp32     void scal_kernel<float, float, 1>(P)
elementwise    -        wrapped_multiply
copy_kernel    fp32     void cudnn::ops::nchwToNhwcKernel<float, float>(P)
copy_kernel    fp16     void nhwcToNchwKernel<__half, float>(P)
# Words inside other words: gemm in gemma and fbgemm, rand in operand, sum in consume.
normalization  -        _gemma_rms_norm_kernel
sort_index     -        void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int const*)
elementwise    bf16     void vllm::rotary_embedding_kernel<c10::BFloat16, true>(P)
embedding      -        split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel
copy_kernel    bf16     void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char>(P)
normalization  bf16     std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, \
void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(P)
elementwise    bf16     void vllm::scaled_fp8_quant_kernel<c10::BFloat16, c10::Float8_e4m3fn>(P)
# Inductor, MIOpen, CK, XLA.
elementwise    -        triton_poi_fused_add_mul_0
random         -        triton_poi_fused_native_dropout_3
reduction      -        triton_red_fused_add_pow_1
normalization  -        triton_per_fused_native_layer_norm_2
softmax        -        triton_red_fused__softmax_4
sort_index     -        triton_spl_fused_add_0
sort_index     -        _topk_forward
copy_kernel    -        batched_transpose_32x32_half
elementwise    -        OpTensorFwdBias
elementwise    -        SubTensorOpWithScalar1d
normalization  bf16     _ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_8PipelineIDF16bDF16bfEEEEvv
elementwise    -        loop_add_fusion
copy_kernel    -        input_concatenate_fusion
copy_kernel    -        Memcpy HtoD (Pageable -> Device)
memset         -        Memset (Device)
memset         -        __amd_rocclr_fillBufferAligned
copy_kernel    -        __amd_rocclr_copyBuffer
""",
)


@pytest.mark.parametrize(("family", "precision", "name"), OTHERS, ids=lambda v: v[:60])
def test_kernels_without_a_matrix_product(family: str, precision: str, name: str) -> None:
    traits = describe(name)
    assert (traits.family, traits.precision or "-") == (family, precision)
    assert traits.tensor_core is (UNKNOWN if family == F.UNKNOWN else NO)
    assert not traits.eligible
    assert traits.collective is None


COLLECTIVES = _table(
    2,
    """
# collective   format
# NCCL by generation: 1.x and 2.0, 2.4 to 2.7, 2.8 to 2.18, 2.19 and later, symmetric kernels.
all_reduce     fp32     void AllReduceKernel<256, 4, FuncSum<float>, float>(KernelArgs<float>)
all_reduce     fp32     ncclAllReduceRingLLKernel_sum_f32(ncclColl)
broadcast      -        ncclBroadcastRingLLKernel_copy_i8(ncclColl)
all_reduce     fp32     ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)
all_reduce     bf16     ncclKernel_AllReduce_TREE_LL_Sum___nv_bfloat16(ncclDevComm*, ncclWork*)
send_recv      -        ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)
all_gather     -        ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)
reduce_scatter bf16     ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevComm*)
reduce         fp16     ncclDevKernel_Reduce_Sum_f16_RING_LL(ncclDevComm*)
all_reduce     -        ncclDevKernel_AllReduce_Sum_u8_RING_LL(ncclDevComm*)
all_reduce     fp8      ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_f8e4m3(ncclSymkDevWorkArgs4K)
all_gather     -        ncclSymDevKernel_AllGather_LLMC(ncclSymDevArgs)
all_reduce     fp16     ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem)
all_reduce     fp64     ncclKernel_AllReduce_RING_LL_Sum_double(ncclWorkElem)
all_reduce     int8     ncclKernel_AllReduce_RING_LL_Sum_int8_t(ncclWorkElem)
all_reduce     fp64     ncclDevKernel_AllReduce_Sum_f64_RING_LL(ncclDevComm*)
reduce         int8     ncclDevKernel_Reduce_Sum_i8_RING_LL(ncclDevComm*)
reduce_scatter fp8      ncclDevKernel_ReduceScatter_Sum_f8e5m2_RING_LL(ncclDevComm*)
# The collective is not in the name, or the name is in lower case.
generic        -        ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)
generic        -        ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)
generic        bf16     mscclKernel_Sum_hip_bfloat16_Simple_false
all_reduce     fp32     nccldevkernel_allreduce_sum_f32_ring_ll
all_to_all     -        ncclKernel_AllToAllPivot_RING_SIMPLE_Sum_int8_t
# Other libraries.
all_reduce     -        gloo:all_reduce
all_gather     -        c10d::_allgather_base_
all_reduce     -        hcom_allReduce__123
all_reduce     -        oneccl_allreduce_ring
all_to_all     -        void deep_ep::internode_ll::dispatch<true>(int)
all_reduce     -        all-reduce-start.3
send_recv      -        %collective-permute-done.1
send_recv      -        recv-done.2
# Custom kernels of inference engines and symmetric memory.
all_reduce     bf16     void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(RankData*)
all_reduce     bf16     void multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)
barrier        -        void c10d::symmetric_memory::barrier_kernel(unsigned int**)
all_to_all     -        all_to_all_dispatch_kernel
all_reduce     fp16     userbuffers_fp16_sum_inplace_gpu_rw
reduce_scatter fp16     void userbuffers_fp16_sum_inplace_gpu_rr_rs_oop<8>(int)
all_gather     fp16     void userbuffers_fp16_sum_inplace_gpu_rw_ag<8>(int)
send_recv      -        kuserbuffers_pushsend(int*, int*, int4*, int4*, int)
all_reduce     bf16     void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>(P)
all_reduce     fp16     void quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot<__half, Q4<__half>>, __half>(P)
reduce_scatter bf16     void aiter::reduce_scatter_cross_device_store<__hip_bfloat16, 8>(P)
reduce_scatter -        _ZN5aiter33reduce_scatter_cross_device_storeIDF16bLi8EEEvPNS_8RankDataE
all_gather     -        mscclpp::collective::allgatherFullmesh2(P)
generic        fp16     void mscclpp::executionKernel<__half>(int)
# NVSHMEM and rocSHMEM called by the host.
barrier        -        void barrier_on_stream_kernel_threadgroup<(threadgroup_t)1>(int, int)
barrier        -        _Z36barrier_on_stream_kernel_threadgroupIL13threadgroup_t1EEvii
all_gather     fp32     void fcollect_on_stream_kernel<float>(int, float*)
send_recv      -        nvshmemi_proxy_rma_entrypoint_blocking(P)
barrier        -        rocshmem::rocshmem_barrier_all_kernel()
all_to_all     -        c10d::nvshmem_extension::allToAllV(P)
# Tokens to experts and back, whoever took over DeepEP's kernels, demangled or not.
all_to_all     bf16     void deep_ep::intranode::combine<__nv_bfloat16, 8, 768, 4096>(P)
all_to_all     -        void deep_ep::intranode::notify_dispatch<8>(P)
barrier        -        void deep_ep::intranode::barrier<8>(int**, int)
all_to_all     -        _ZN7deep_ep9intranode8dispatchILi8ELi768ELi4096EEEvP4int4
all_to_all     -        void primus_turbo::deep_ep::intranode::dispatch<8, 768, 4096>(P)
all_to_all     -        void internode_ll::dispatch<true, 7168>(P)
all_to_all     -        uccl::intranode::cached_notify_combine(P)
all_to_all     -        void nixl_ep::dispatch<true>(P)
all_to_all     -        void hybrid_ep::combine_kernel<8>(P)
all_to_all     bf16     EpDispatchInterNodeKernel_bf16
all_to_all     bf16     void mori::moe::EpCombineIntraNodeKernel<hip_bfloat16>(P)
all_to_all     -        void tensorrt_llm::kernels::moe_comm::moeA2ADispatchKernel<Policy>(P)
all_to_all     -        void a2a_combine_recv_kernel<true>(P)
all_reduce     fp16     void tensorrt_llm::kernels::oneShotAllReduceKernel<__half>(P)
all_reduce     fp16     void flashinfer::trtllm_allreduce_fusion::\
allreduce_fusion_kernel_oneshot_lamport<__half>(P)
""",
)


@pytest.mark.parametrize(("collective", "precision", "name"), COLLECTIVES, ids=lambda v: v[:60])
def test_collectives(collective: str, precision: str, name: str) -> None:
    traits = describe(name)
    assert (traits.collective, traits.precision or "-") == (collective, precision)
    assert (traits.family, traits.tensor_core, traits.eligible) == (F.COLLECTIVE, NO, False)


@pytest.mark.parametrize(
    ("spelling", "precision"),
    [
        ("c10::Float8_e4m3fn", P.FP8),
        ("__nv_fp8_e5m2", P.FP8),
        ("ck_tile::fp8_t", P.FP8),
        ("c10::Float4_e2m1fn_x2", P.FP4),
        ("__nv_fp4_e2m1", P.FP4),
        ("cutlass::float_e2m1_t", P.FP4),
        ("__nv_bfloat162", P.BF16),
        ("hip_bfloat16", P.BF16),
        ("__bf16", P.BF16),
        ("ck::bhalf_t", P.BF16),
        ("ck_tile::bf16_t", P.BF16),
        ("half2", P.FP16),
        ("_Float16", P.FP16),
        ("float16_t", P.FP16),
        ("ck_tile::fp16_t", P.FP16),
        ("cutlass::tfloat32_t", P.TF32),
        ("float4", P.FP32),
        ("c10::complex<double>", P.FP64),
        ("int8_t", P.INT8),
        ("signed char", P.INT8),
        ("unsigned char", None),
        ("OpaqueType<2u>", None),
        ("Fp8KVCacheDataType", None),
        ("my_float_thing", None),
    ],
)
def test_types_among_template_arguments(spelling: str, precision: Precision | None) -> None:
    assert describe(f"void ns::some_function<4, {spelling}, 2>(int, float)").precision == precision
    assert op_precision(f'["Scalar", "{spelling}"]') == precision


@pytest.mark.parametrize(
    "name",
    [
        "hipLaunchedSomething_kernel",  # one peer takes every name that begins with hip for communication
        "void at::native::reduce_kernel<512, 1, float>(P)",
        "void softmax_kernel<WarpAllReduce<float>>(P)",  # a reduction inside a warp, in the arguments
        "warp_all_reduce_sum",
        "blockAllReduce",
        "triton_per_fused_all_reduce_0",
        "void broadcast_add_kernel<float>(P)",
        "void cta_allreduce<float>(P)",
        "void deep_ep::layout::get_dispatch_layout<256, 32, 8>(P)",  # counts tokens, on one device
        "void flash::flash_fwd_splitkv_combine_kernel<Traits>(P)",
        "void vllm::moe::moe_combine_kernel<float>(P)",
        "void dispatch_kernel<float>(P)",
        "triton_poi_fused_add_all_reduce_4",  # what Inductor fused behind an all-reduce
    ],
)
def test_kernels_that_only_sound_like_collectives(name: str) -> None:
    assert describe(name).collective is None


@pytest.mark.parametrize(
    "name",
    [
        "void cutlass::device_kernel<bytedance::flux::GemmRS<ReduceScatter>>(P)",
        "gemm_allreduce_nvls_kernel",
        "kernel_consumer_gemm_allgather",
    ],
)
def test_a_product_that_communicates_is_a_product(name: str) -> None:
    traits = describe(name)
    assert (traits.family, traits.collective) == (F.GEMM, None)


@pytest.mark.parametrize("name", ["", "my_kernel", "fusion_12", "(((((", "<<<>>>", "_ZN9999", "_ZN", "_Z9999", "void"])
def test_a_name_that_says_nothing_is_unknown_never_no(name: str) -> None:
    traits = describe(name)
    assert (traits.family, traits.tensor_core, traits.precision) == (F.UNKNOWN, UNKNOWN, None)
    assert traits.tensor_core_reason
    assert traits.precision_reason


def test_an_unknown_kernel_with_a_matrix_instruction_uses_tensor_cores() -> None:
    assert describe("my_wgmma_kernel").tensor_core is YES
    assert describe("summary_kernel").tensor_core is UNKNOWN


@pytest.mark.parametrize(
    "name",
    [
        "(" * 200_000,
        "<(" * 100_000,
        "_" * 500_000,
        "gemm_" * 100_000,
        "_ZN" + "1a" * 100_000,
        "TensorIterator(" * 50_000,
        "winograd" * 50_000,
        "attention" * 50_000,
        "Cijk_Ailk_Bljk_" + "magma_" * 50_000,
    ],
)
def test_hostile_names_cost_little_time(name: str) -> None:
    begin = time.process_time()
    describe(name)
    assert time.process_time() - begin < 0.3


@pytest.mark.parametrize(
    ("types", "precision"),
    [
        ('["c10::BFloat16", "Scalar"]', P.BF16),
        ('["long int", "c10::Half"]', P.FP16),
        ('[["float", "float"], "Int"]', P.FP32),
        ("double", P.FP64),
        ("c10::Float8_e4m3fn", P.FP8),
        ('["signed char"]', P.INT8),
        ('["c10::complex<float>"]', P.FP32),
        ('["unsigned char", "bool", "long int"]', None),
        ('["", "Scalar", "GenericList"]', None),
        ("[", None),
    ],
)
def test_precision_of_an_op(types: str, precision: Precision | None) -> None:
    assert op_precision(types) == precision


@cache
def _events(name: str) -> list[dict[str, Any]]:
    with gzip.open(real_trace(f"kineto/{name}.json.gz"), "rt", errors="replace") as file:
        loaded = json.load(file, strict=False)
    return [event for event in loaded["traceEvents"] if event.get("ph") == "X"]


def _kernels(name: str) -> list[dict[str, Any]]:
    return [event for event in _events(name) if str(event.get("cat")).lower() == "kernel"]


@pytest.mark.real
@pytest.mark.parametrize(
    ("trace", "yes", "no", "precisions"),
    [
        ("h100_qwen05b", 275, 1, {P.BF16: 275, P.FP32: 1}),
        ("h100_bert_small", 30, 0, {P.BF16: 30}),
        pytest.param("v100_resnet50_workers0", 0, 966, {P.FP32: 966}, marks=pytest.mark.slow),
        pytest.param("v100_two_ranks_rank1", 0, 2665, {P.FP32: 2665}, marks=pytest.mark.slow),
        pytest.param("a100_alexnet_sync", 6, 10, {P.TF32: 6, P.FP32: 10}, marks=pytest.mark.slow),
        ("a100_rank0_of_128", 308, 34, {P.TF32: 308, P.FP32: 34}),
        pytest.param("b200_eager_rank0_of_8", 217, 0, {P.BF16: 109, P.FP8: 108}, marks=pytest.mark.slow),
        ("mi210_gpu_only", 62, 0, {P.BF16: 62}),
        pytest.param("mi300_resnet_checkpointing_rank0_of_8", 325, 0, {P.BF16: 325}, marks=pytest.mark.slow),
        ("mi300_vllm_decode", 145, 0, {P.BF16: 121, None: 24}),
    ],
)
def test_tensor_core_use_of_real_traces(trace: str, yes: int, no: int, precisions: dict[Precision | None, int]) -> None:
    eligible = [traits for event in _kernels(trace) if (traits := describe(event["name"])).eligible]
    assert Counter(traits.tensor_core for traits in eligible) == Counter({YES: yes, NO: no})
    assert Counter(traits.precision for traits in eligible) == precisions


@pytest.mark.real
@pytest.mark.parametrize(
    "trace",
    [
        pytest.param("a100_alexnet_sync", marks=pytest.mark.slow),
        "a100_event_sync",
        "a100_rank0_of_128",
        "a100_rank1_of_128",
        pytest.param("b200_eager_rank0_of_8", marks=pytest.mark.slow),
        "h100_bert_small",
        "h100_qwen05b",
        "mi210_gpu_only",
        pytest.param("mi300_resnet_checkpointing_rank0_of_8", marks=pytest.mark.slow),
        "mi300_vllm_decode",
        "mi300_vllm_prefilldecode",
        "torch_compile_triton",
        pytest.param("v100_resnet50_workers0", marks=pytest.mark.slow),
        pytest.param("v100_two_ranks_rank1", marks=pytest.mark.slow),
    ],
)
def test_every_kernel_of_the_real_traces_is_known(trace: str) -> None:
    names = {event["name"] for event in _kernels(trace)}
    assert names
    assert {name for name in names if describe(name).tensor_core is UNKNOWN} == set()


@pytest.mark.real
@pytest.mark.parametrize(
    ("trace", "compared"),
    [
        ("h100_qwen05b", 193),
        ("h100_bert_small", 30),
        pytest.param("mi300_resnet_checkpointing_rank0_of_8", 243, marks=pytest.mark.slow),
        pytest.param("v100_resnet50_workers0", 966, marks=pytest.mark.slow),
    ],
)
def test_precision_agrees_with_the_types_of_the_op_that_launched_the_kernel(trace: str, compared: int) -> None:
    """Two witnesses that know nothing of each other: the kernel's name and the op's recorded input types."""
    events = _events(trace)
    types = {_op_id(e): json.dumps(e["args"]["Input type"]) for e in events if "Input type" in e.get("args", {})}
    pairs = [
        (describe(e["name"]).precision, op_precision(types[_op_id(e)]))
        for e in events
        if str(e.get("cat")).lower() == "kernel" and _op_id(e) in types and describe(e["name"]).eligible
    ]
    assert len(pairs) >= compared
    assert [pair for pair in pairs if pair[0] != pair[1]] == []


def _op_id(event: dict[str, Any]) -> int | None:
    arguments = event.get("args", {})
    return arguments.get("External id", arguments.get("external id"))


@pytest.mark.real
@pytest.mark.slow
def test_collectives_of_real_traces() -> None:
    def kinds(trace: str) -> Counter[Collective | None]:
        found = (describe(event["name"]).collective for event in _kernels(trace))
        return Counter(kind for kind in found if kind is not None)

    assert kinds("v100_two_ranks_rank1") == {C.ALL_REDUCE: 2020}
    assert kinds("b200_eager_rank0_of_8") == {C.ALL_REDUCE: 73, C.ALL_GATHER: 1}
    assert kinds("mi300_resnet_checkpointing_rank0_of_8") == {C.GENERIC: 17}
    assert kinds("a100_rank0_of_128") == {C.SEND_RECV: 10}
    assert kinds("h100_qwen05b") == {}
