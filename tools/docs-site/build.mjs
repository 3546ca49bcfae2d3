// Builds the documentation as a static site: the user pages as they are, the API from the proto files and the gateway's OpenAPI.
// `node tools/docs-site/build.mjs OUT [--serve]`, after a build of the project. Installs VitePress beside this file once.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { apiPages, httpPage } from './api-pages.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');
/** What the site shows, by its path in the project. Links to other files show only the file's name. */
const SHOWN = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'docs',
  'sdks/python/README.md',
  'sdks/typescript/README.md',
  'docker/README.md',
];

/** Head of a page without headings, which needs no outline. */
const WIDE = '---\naside: false\n---\n\n';

function installVitePress() {
  if (existsSync(join(here, 'node_modules/vitepress'))) return;
  process.stderr.write('installing VitePress\n');
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: here, stdio: ['ignore', 2, 2] });
}

/** Copies the pages into their own folder, because VitePress reads all files below its source. */
function stage() {
  const dir = mkdtempSync(join(tmpdir(), 'etude-docs-'));
  for (const path of SHOWN.filter((one) => existsSync(join(root, one)))) cpSync(join(root, path), join(dir, path), { recursive: true });
  writeFileSync(join(dir, 'index.md'), WIDE + readFileSync(join(root, 'README.md'), 'utf8'));
  cpSync(join(here, '.vitepress'), join(dir, '.vitepress'), { recursive: true });
  symlinkSync(join(here, 'node_modules'), join(dir, 'node_modules'));
  writeFileSync(join(dir, 'package.json'), '{ "type": "module" }\n');
  const image = execFileSync(join(root, 'node_modules/.bin/buf'), ['build', '-o', '-#format=json'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  const folder = join(dir, 'docs/reference/api');
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of apiPages(JSON.parse(image))) writeFileSync(join(folder, `${name}.md`), text);
  return dir;
}

/** Serves the built site on a free port of this machine alone, and opens a browser if there is a screen. */
async function serve(out) {
  const { preview } = await import('vite');
  const open = Boolean(process.env.DISPLAY);
  const server = await preview({ root: out, build: { outDir: '.' }, preview: { host: '127.0.0.1', port: 0, open }, logLevel: 'silent' });
  process.stdout.write(`${server.resolvedUrls.local[0]}\n`);
}

async function main() {
  const [out, flag] = process.argv.slice(2);
  if (!out || (flag && flag !== '--serve')) throw new Error('usage: node tools/docs-site/build.mjs OUT [--serve]');
  installVitePress();
  const { build } = await import('vitepress');
  const dir = stage();
  try {
    const { openApi } = await import('../../apps/gateway/dist/doors/openapi.js');
    const api = openApi('Etude.Skill');
    writeFileSync(join(dir, 'docs/reference/api/http.md'), WIDE + httpPage(api));
    mkdirSync(join(dir, 'public'));
    writeFileSync(join(dir, 'public/openapi.json'), JSON.stringify(api, null, 2));
    process.env.ETUDE_DOCS_PAGES = JSON.stringify(readdirSync(join(dir, 'docs/reference/api')).toSorted());
    await build(dir, { outDir: resolve(out) });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  if (flag) await serve(resolve(out));
  else process.stdout.write(`${resolve(out)}\n`);
}

await main();
