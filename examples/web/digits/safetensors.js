/** Read a file of f32 as tensors by their names: a header of JSON, and the numbers. */
export async function readSafetensors(url, ctx) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`Can't read ${url.href} (${answer.status}).`);
  const bytes = await answer.arrayBuffer();
  const start = 8 + Number(new DataView(bytes).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.slice(8, start)));
  delete header.__metadata__;
  const tensors = Object.entries(header).map(([name, { dtype, shape, data_offsets }]) => {
    if (dtype !== "F32") throw new Error(`'${name}' has numbers of type ${dtype}; expected F32.`);
    const [from, to] = data_offsets.map((offset) => start + offset);
    return [name, ctx.tensor(new Float32Array(bytes.slice(from, to)), shape)];
  });
  return Object.fromEntries(tensors);
}
