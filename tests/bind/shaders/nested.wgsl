// Templates in templates, and operators that look like them.
enable f16;
requires readonly_and_readwrite_storage_textures;
diagnostic(off, derivative_uniformity);
alias Row = array<vec4<f32>,3>;
alias Grid=array<array<vec2<u32>,(16>>2)>,1<<1>;
struct Block { rows: array<Row,2>, grid: Grid, corners: array<mat4x2<f32>,2>, }
const COUNT : u32 = select(3u, 4u, 2 > 1);
@group(0) @binding(0) var<storage,read>blocks:array<Block>;
@group(0) @binding(1) var<storage,read_write>sums:array<array<f32,COUNT>,2>;
var<private> seen: array<array<bool,2>,2>;

fn total(rows: ptr<function,array<Row,2>>) -> f32 {
    var sum = 0.0;
    for (var i = 0; i<2; i++) { for (var j = 0; j<3; j++) { sum += dot((*rows)[i][j], vec4<f32>(1)); } }
    return sum;
}

@compute @workgroup_size(1,1<<1)
fn add(@builtin(global_invocation_id) id: vec3<u32>) {
    let a = 1u; let b = 2u; let c = 3u;
    let odd = array<bool,2>((a < b), c > (b));
    var rows = blocks[id.y].rows;
    sums[id.y][0] = total(&rows);
    var grid = vec2<u32>();
    for (var i = 0; i < 2; i++) { for (var j = 0; j < 4; j++) { grid += blocks[id.y].grid[i][j]; } }
    sums[id.y][1] = f32(grid.x); sums[id.y][2] = f32(grid.y);
    sums[id.y][3] = select(0.0, 1.0, odd[0] && odd[1]) + blocks[id.y].corners[1][3].y;
}
