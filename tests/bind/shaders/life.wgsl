// A cellular automaton on a torus; its sizes are overrides of the pipeline.
override WIDTH: u32;
override HEIGHT: u32 = WIDTH;
override BLOCK = 8u;

@group(0) @binding(0) var<storage, read> before: array<u32>;
@group(0) @binding(1) var<storage, read_write> after: array<u32>;

fn cell(x: u32, y: u32) -> u32 { return before[(y % HEIGHT) * WIDTH + x % WIDTH]; }

@compute @workgroup_size(BLOCK, BLOCK)
fn step(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= WIDTH || id.y >= HEIGHT { return; }
    let x = id.x + WIDTH;
    let y = id.y + HEIGHT;
    var around = 0u;
    for (var dy = 0u; dy < 3u; dy++) {
        for (var dx = 0u; dx < 3u; dx++) { around += cell(x + dx - 1u, y + dy - 1u); }
    }
    let now = cell(x, y);
    around -= now;
    after[id.y * WIDTH + id.x] = select(0u, 1u, around == 3u || (around == 2u && now == 1u));
}
