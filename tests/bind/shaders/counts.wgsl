// Extremes, a histogram and the first of each bin, by atomic functions.
struct Extremes { least: atomic<i32>, most: atomic<i32>, }
struct Found { extremes: Extremes, bits: atomic<u32>, first: array<atomic<u32>, 5>, bins: array<atomic<u32>> }
@group(0) @binding(0) var<storage, read> values: array<i32>;
@group(0) @binding(1) var<storage, read_write> found: Found;
var<workgroup> mine: array<atomic<u32>, 5>;

@compute @workgroup_size(16)
fn count(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) local: u32) {
    // wgpu-native does not clear it, as WGSL has it.
    if local < 5u { atomicStore(&mine[local], 0u); }
    workgroupBarrier();
    if id.x < arrayLength(&values) {
        let value = values[id.x];
        atomicMin(&found.extremes.least, value);
        atomicMax(&found.extremes.most, value);
        let bin = u32(value + 1000) % 5u;
        atomicOr(&found.bits, 1u << bin);
        atomicAdd(&mine[bin], 1u);
        atomicMin(&found.first[bin], id.x);
    }
    workgroupBarrier();
    if local < 5u { atomicAdd(&found.bins[local], atomicLoad(&mine[local])); }
}
