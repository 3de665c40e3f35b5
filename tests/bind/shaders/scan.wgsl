// Running sums in two passes: within blocks, then the sums of the blocks before.
const BLOCK: u32 = 64;
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;
var<workgroup> line: array<u32, BLOCK>;

@compute @workgroup_size(BLOCK)
fn within(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) block: vec3u,
) {
    line[lane] = select(0u, data[id.x], id.x < arrayLength(&data));
    for (var far = 1u; far < BLOCK; far <<= 1u) {
        workgroupBarrier();
        let add = select(0u, line[lane - far], lane >= far);
        workgroupBarrier();
        line[lane] += add;
    }
    if id.x < arrayLength(&data) { data[id.x] = line[lane]; }
    if lane == BLOCK - 1u { sums[block.x] = line[lane]; }
}

@compute @workgroup_size(BLOCK)
fn across(@builtin(global_invocation_id) id: vec3u, @builtin(workgroup_id) block: vec3u) {
    if id.x >= arrayLength(&data) { return; }
    var before = 0u;
    for (var i = 0u; i < block.x; i++) { before += sums[i]; }
    data[id.x] += before;
}
