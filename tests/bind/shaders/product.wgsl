// A product of matrices by tiles in workgroup memory.
const TILE = 8u;
alias Tile = array<array<f32, TILE>, TILE>;
struct Shape { m: u32, k: u32, n: u32 }
@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> c: array<f32>;
var<workgroup> left: Tile;
var<workgroup> right: Tile;

@compute @workgroup_size(TILE, TILE)
fn multiply(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) at: vec3u) {
    var sum = 0.0;
    for (var p = 0u; p < shape.k; p += TILE) {
        let i = p + at.x;
        let j = p + at.y;
        left[at.y][at.x] = select(0.0, a[id.y * shape.k + i], id.y < shape.m && i < shape.k);
        right[at.y][at.x] = select(0.0, b[j * shape.n + id.x], j < shape.k && id.x < shape.n);
        workgroupBarrier();
        for (var q = 0u; q < TILE; q++) { sum += left[at.y][q] * right[q][at.x]; }
        workgroupBarrier();
    }
    if id.y < shape.m && id.x < shape.n { c[id.y * shape.n + id.x] = sum; }
}
