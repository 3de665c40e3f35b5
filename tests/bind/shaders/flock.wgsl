struct Bird { place: vec2f, speed: vec2f }
struct Rules { near: f32, pull: f32, delta: f32 }
struct Flock { birds: array<Bird> }
@binding(0) @group(0) var<uniform> rules: Rules;
@binding(1) @group(0) var<storage, read> old: Flock;
@binding(2) @group(0) var<storage, read_write> fresh: Flock;

@compute @workgroup_size(64)
fn fly(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= arrayLength(&old.birds)) { return; }
    var bird = old.birds[id.x];
    var sum = vec2<f32>(0.0, 0.0);
    var count = 0.0;
    for (var i = 0u; i < arrayLength(&old.birds); i = i + 1u) {
        if (i != id.x && distance(old.birds[i].place, bird.place) < rules.near) {
            sum = sum + old.birds[i].place;
            count = count + 1.0;
        }
    }
    if (count > 0.0) { bird.speed += (sum / count - bird.place) * rules.pull; }
    bird.place += bird.speed * rules.delta;
    fresh.birds[id.x] = bird;
}
