import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

const PIXELS_PER_UNIT = 2;
const FONTS = ['DejaVuSans', 'DejaVuSans-Bold'];
/** A process may start the renderer once. */
let started: Promise<void> | undefined;

/** Renders a picture in its own font, so that it looks the same on every machine. */
export async function pngOf(svg: string): Promise<Uint8Array> {
  const { resolve } = createRequire(import.meta.url);
  const { initWasm, Resvg } = await import('@resvg/resvg-wasm');
  await (started ??= readFile(resolve('@resvg/resvg-wasm/index_bg.wasm')).then(initWasm));
  const fontBuffers = await Promise.all(FONTS.map((name) => readFile(resolve(`dejavu-fonts-ttf/ttf/${name}.ttf`))));
  const font = { fontBuffers, defaultFontFamily: 'DejaVu Sans', sansSerifFamily: 'DejaVu Sans' };
  return new Resvg(svg, { fitTo: { mode: 'zoom', value: PIXELS_PER_UNIT }, font }).render().asPng();
}
