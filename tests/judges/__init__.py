"""Generated shaders before judges of their own: WGSL compilers other than naga."""
