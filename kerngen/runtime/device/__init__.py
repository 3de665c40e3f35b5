"""The device: adapters, memory, pipelines, recording, copies and timing, by wgpu."""
