# motley_torch: LibTorch with the project's only precompiled header.
#
# Only ATen is used, never torch/torch.h (15 s per file). A target that calls
#   target_precompile_headers(TARGET REUSE_FROM motley_torch)
# shares the precompiled <ATen/ATen.h>; it must link motley::torch and motley_warnings.
motley_add_module(torch
  SOURCES models/kernels/torch_threads.cc
  HEADERS models/device/torch_compat.h models/kernels/torch_threads.h
  PUBLIC motley::base LibTorch::LibTorch)
target_precompile_headers(motley_torch PRIVATE <ATen/ATen.h> <ATen/Parallel.h>)
