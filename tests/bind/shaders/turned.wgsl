// The transpose of a matrix, by tiles; overrides decide the tile.
@id(3) override TILE: u32 = 8;
@id(0) override ROWS: u32 = TILE / 2;
@id(1200) override negate: bool = false;
override scale: f32 = 1.0;
override half_scale = scale * 0.5;
const PAD = 1;

struct Shape { rows: u32, columns: u32 }
@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> matrix: array<f32>;
@group(0) @binding(2) var<storage, read_write> result: array<f32>;

var<workgroup> tile: array<f32, TILE * (TILE + 1)>;

@compute @workgroup_size(TILE, ROWS)
fn transpose_(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) local: vec3u) {
    for (var y = local.y; y < TILE; y += ROWS) {
        let at = group.xy * TILE + vec2u(local.x, y);
        if at.x < shape.columns && at.y < shape.rows {
            tile[y * (TILE + PAD) + local.x] = matrix[at.y * shape.columns + at.x];
        }
    }
    workgroupBarrier();
    for (var y = local.y; y < TILE; y += ROWS) {
        let at = group.yx * TILE + vec2u(local.x, y);
        if at.x < shape.rows && at.y < shape.columns {
            let value = 2.0 * half_scale * tile[local.x * (TILE + PAD) + y];
            result[at.y * shape.rows + at.x] = select(value, -value, negate);
        }
    }
}
