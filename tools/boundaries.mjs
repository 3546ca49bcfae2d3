// Checks in the sources who imports what. `node tools/boundaries.mjs [ROOT]` lists violations and ends with 1 if there are any.
// `--canary` first breaks every rule on purpose and ends with 1 if a violation goes unnoticed.
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { canary } from './boundaries.canary.mjs';

/** What each type of package may import of the others. `mayReach` allows more to test code. */
const DIRECTION = {
  'type:contracts': [],
  'type:domain': ['type:contracts'],
  'type:platform': ['type:contracts'],
  'type:adapter': ['type:contracts', 'type:domain'],
  // The gateway runs this server over HTTP, the command line over stdio. The server knows only the gateway's calls.
  'type:mcp': ['type:contracts'],
  'type:app': ['type:contracts', 'type:domain', 'type:platform', 'type:adapter', 'type:mcp'],
  'type:cli': ['type:contracts', 'type:mcp'],
  // The console uses only the gateway's HTTP API, so it knows only the messages of this API.
  'type:web': ['type:contracts'],
  'type:support': [],
  'type:test': ['type:contracts', 'type:domain', 'type:platform', 'type:adapter', 'type:mcp', 'type:support'],
  // Benchmarks of sandboxes start the tests' cluster.
  'type:bench': ['type:contracts', 'type:domain', 'type:platform', 'type:adapter', 'type:mcp', 'type:support', 'type:test'],
};

/** Vendors that only the listed libraries may import. Benchmarks may import them too, to measure against the bare vendor. */
const VENDORS = {
  bullmq: '@etude/queue',
  ioredis: '@etude/queue',
  openai: '@etude/model',
  'onnxruntime-node': '@etude/model',
  '@huggingface/tokenizers': '@etude/model',
  '@qdrant/js-client-rest': '@etude/memory',
  'sqlite-vec': '@etude/memory',
  'node:sqlite': '@etude/memory',
  unpdf: '@etude/documents',
  parse5: '@etude/documents',
  yauzl: ['@etude/documents', '@etude/cli'],
  yazl: '@etude/test-support',
  micromark: '@etude/documents',
  'tar-stream': '@etude/documents',
  '@astral-sh/ruff-wasm-nodejs': '@etude/analysis',
  '@secretlint/secretlint-rule-preset-recommend': '@etude/analysis',
  '@modelcontextprotocol/server': '@etude/mcp',
  '@modelcontextprotocol/node': '@etude/mcp',
  '@kubernetes/client-node': '@etude/sandbox',
  '@opentelemetry/api': '@etude/platform',
  '@opentelemetry/exporter-trace-otlp-proto': '@etude/platform',
  '@opentelemetry/resources': '@etude/platform',
  '@opentelemetry/sdk-trace': '@etude/platform',
};

/** Vendors that only one folder of their library knows. */
const VENDOR_FOLDERS = { '@qdrant/js-client-rest': 'libs/memory/src/qdrant/' };

/** Whatever else a package may import from outside the workspace, by type. Test code may also use the root's tools. */
const OUTSIDE = {
  'type:contracts': [/^zod$/, /^@bufbuild\/protobuf$/, /^@grpc\/grpc-js$/, /^node:events$/],
  // Hashing and bytes depend only on their input. Everything else in Node has side effects.
  'type:domain': [/^zod$/, /^node:(crypto|buffer)$/],
  'type:app': [
    /^@nestjs\//,
    /^@grpc\//,
    /^grpc-health-check$/,
    /^zod$/,
    /^rxjs$/,
    /^@bufbuild\/protobuf$/,
    /^reflect-metadata$/,
    /^diff$/,
    /^node:/,
  ],
  // Bundled, so no service installs them.
  'type:web': [/^react(-dom)?$/, /^@base-ui\/react$/, /^@tanstack\/react-/, /^@lezer\//, /^eventsource-parser$/, /^@bufbuild\/protobuf$/],
  'type:cli': [
    /^commander$/,
    /^@bomb\.sh\/tab$/,
    /^@grpc\/grpc-js$/,
    /^@bufbuild\/protobuf$/,
    /^zod$/,
    /^@resvg\/resvg-wasm$/,
    /^yaml$/,
    /^node:/,
  ],
};

/** The only file of the domain that reads files. It reads the domain's Python files as text when the code is loaded. */
const READS_OWN_PYTHON = 'libs/domain/src/python-files.ts';

/** Files that may read the environment. Settings are parsed once, at the start of a process. */
const MAY_READ_ENVIRONMENT = [/(^|\/)([a-z-]+-)?main\.ts$/, /^libs\/platform\/src\/config\.ts$/, /^test\//, /^bench\//];

const isTestFile = (path) => /-fixture\.ts$|^test\/|\.spec\.ts$|\/testing\/|\/test\//.test(path);
const packageOf = (specifier) => (specifier.startsWith('@') ? specifier.split('/').slice(0, 2).join('/') : specifier.split('/')[0]);
const typeOf = (pkg) => pkg.nx?.tags?.find((tag) => tag.startsWith('type:'));

function readPackages(root) {
  return globSync(['apps/*/package.json', 'libs/*/package.json', 'test/*/package.json', 'bench/package.json'], { cwd: root }).map(
    (file) => {
      const json = JSON.parse(readFileSync(join(root, file), 'utf8'));
      return { ...json, dir: dirname(file), type: typeOf(json) };
    },
  );
}

function* violationsOfImport(from, file, specifier, packages, rootTools) {
  const test = isTestFile(file);
  if (specifier.startsWith('.')) {
    const target = relative('.', resolve('/', dirname(file), specifier).slice(1));
    // The configuration of tests in a cluster extends the configuration at the root.
    if (!target.startsWith(`${from.dir}/`) && !file.endsWith('/vitest.cluster.ts'))
      yield ['relative', `reaches out of its package: ${specifier}`];
    return;
  }
  const name = isBuiltin(specifier) ? (specifier.startsWith('node:') ? specifier : `node:${specifier}`) : packageOf(specifier);
  const owner = VENDORS[name];
  const isOwner = [owner].flat().includes(from.name);
  if (owner && !isOwner && from.type !== 'type:bench') yield ['vendor', `only ${owner} may import ${name}`];
  const folder = VENDOR_FOLDERS[name];
  if (folder && isOwner && !file.startsWith(folder)) yield ['vendor', `only ${folder} may import ${name}`];
  const target = packages.find((pkg) => pkg.name === name);
  if (target) {
    if (target !== from) yield* violationsOfDirection(from, target, specifier, test);
  } else if (!name.startsWith('node:') || OUTSIDE[from.type]) {
    const allowed = OUTSIDE[from.type];
    const readsPython = file === READS_OWN_PYTHON && name === 'node:fs';
    if (allowed && !test && !owner && !readsPython && !allowed.some((pattern) => pattern.test(name)))
      yield ['outside', `${from.type} may not import ${name}`];
  }
  if (name.startsWith('node:') || target === from) return;
  const declared = {
    ...from.dependencies,
    ...(from.type === 'type:web' ? from.devDependencies : {}),
    ...(test ? { ...from.devDependencies, ...rootTools } : {}),
  };
  if (!(name in declared)) yield ['undeclared', `imports ${name} without naming it in ${test ? 'devDependencies' : 'dependencies'}`];
}

function* violationsOfDirection(from, target, specifier, test) {
  const testing = specifier.includes('/testing/');
  const mayReach = DIRECTION[from.type].includes(target.type) || (test && target.type === 'type:support');
  if (!mayReach) yield ['direction', `${from.name} (${from.type}) may not import ${target.name} (${target.type})`];
  if (testing && !test && !['type:test', 'type:bench'].includes(from.type)) yield ['testing', `only tests may import ${specifier}`];
  if (specifier === target.name) yield ['subpath', `import ${target.name} by subpath`];
}

function* violationsOfSource(file, source) {
  if (/^\s*export\s+\*/m.test(source)) yield ['barrel', 'export * makes a barrel; import from where it is'];
  if (/(^|\/)index\.ts$/.test(file)) yield ['barrel', 'index.ts is a barrel; import by subpath'];
  const free = isTestFile(file) || MAY_READ_ENVIRONMENT.some((pattern) => pattern.test(file));
  if (!free && /\bprocess\s*\.\s*env\b/.test(source.replaceAll(/\/\/.*|\/\*[^]*?\*\//g, '')))
    yield ['environment', 'process.env is read in main.ts only'];
}

/**
 * Groups of sibling folders in a package's sources that import each other, directly or through other folders.
 *
 * @param imports product files of `src/`, each with the files that it imports, as paths from the root
 */
function folderCycles(imports) {
  const graphs = new Map();
  for (const { file, target } of imports) {
    const [from, to] = [file.split('/'), target.split('/')];
    const level = from.findIndex((part, i) => part !== to[i]);
    // Only folders are compared. A file beside a folder belongs to the folder above.
    if (level < 0 || level >= from.length - 1 || level >= to.length - 1) continue;
    const parent = from.slice(0, level).join('/');
    const graph = graphs.get(parent) ?? new Map();
    graphs.set(parent, graph.set(from[level], (graph.get(from[level]) ?? new Set()).add(to[level])));
  }
  return [...graphs].flatMap(([parent, graph]) => {
    const reached = new Map([...graph.keys()].map((folder) => [folder, reachable(graph, folder)]));
    const around = [...reached].filter(([folder, others]) => others.has(folder)).map(([folder]) => folder);
    const groups = new Set(
      around.map((folder) => around.filter((other) => reached.get(folder).has(other) && reached.get(other).has(folder)).join(', ')),
    );
    return [...groups].map((folders) => ({ file: parent, rule: 'folders', message: `folders import each other: ${folders}` }));
  });
}

function reachable(graph, from) {
  const found = new Set();
  const open = [from];
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    for (const next of graph.get(folder) ?? []) {
      if (found.has(next)) continue;
      found.add(next);
      open.push(next);
    }
  }
  return found;
}

/** Every violation under `root` as {file, rule, message}. */
export function check(root) {
  const packages = readPackages(root);
  const rootFile = join(root, 'package.json');
  const rootTools = existsSync(rootFile) ? JSON.parse(readFileSync(rootFile, 'utf8')).devDependencies : {};
  const found = [];
  let files = 0;
  for (const pkg of packages) {
    if (!DIRECTION[pkg.type])
      found.push({ file: `${pkg.dir}/package.json`, rule: 'tag', message: `needs one of the tags ${Object.keys(DIRECTION).join(', ')}` });
    if (!DIRECTION[pkg.type]) continue;
    const within = [];
    for (const file of globSync(`${pkg.dir}/**/*.{ts,tsx}`, {
      cwd: root,
      exclude: (path) => /(^|\/)(node_modules|dist|gen)(\/|$)/.test(path),
    })) {
      files++;
      const source = readFileSync(join(root, file), 'utf8');
      const specifiers = new Set(ts.preProcessFile(source, true, true).importedFiles.map(({ fileName }) => fileName));
      for (const specifier of specifiers) {
        for (const [rule, message] of violationsOfImport(pkg, file, specifier, packages, rootTools)) found.push({ file, rule, message });
      }
      if (file.startsWith(`${pkg.dir}/src/`) && !isTestFile(file))
        for (const specifier of specifiers) if (specifier.startsWith('.')) within.push({ file, target: join(dirname(file), specifier) });
      for (const [rule, message] of violationsOfSource(file, source)) found.push({ file, rule, message });
    }
    found.push(...folderCycles(within));
  }
  return { found, files, packages: packages.length };
}

/** Breaks each rule in a temporary workspace. Returns the breaches that went unnoticed, and the false alarms. */
function blindSpots() {
  const root = mkdtempSync(join(tmpdir(), 'etude-boundaries-'));
  try {
    for (const [file, text] of Object.entries(canary.files)) {
      mkdirSync(dirname(join(root, file)), { recursive: true });
      writeFileSync(join(root, file), text);
    }
    const seen = check(root)
      .found.map(({ file, rule }) => `${rule}: ${file}`)
      .toSorted();
    const expected = canary.expected.toSorted();
    return [
      ...expected.filter((line) => !seen.includes(line)).map((line) => `not noticed: ${line}`),
      ...seen.filter((line) => !expected.includes(line)).map((line) => `noticed without cause: ${line}`),
    ];
  } finally {
    rmSync(root, { recursive: true });
  }
}

function main(args) {
  if (args.includes('--canary')) {
    const blind = blindSpots();
    if (blind.length > 0) {
      console.log(`the check itself is broken:\n${blind.join('\n')}`);
      return 1;
    }
    console.log(`canary ok: ${canary.expected.length} breaches noticed`);
  }
  const root = args.find((arg) => !arg.startsWith('--')) ?? fileURLToPath(new URL('..', import.meta.url));
  const { found, files, packages } = check(root);
  for (const { file, rule, message } of found) console.log(`${file}: ${message} [${rule}]`);
  if (packages === 0 || files === 0) console.log(`nothing to check under ${root}`);
  else if (found.length === 0) console.log(`boundaries ok: ${files} files of ${packages} packages`);
  return found.length > 0 || files === 0 ? 1 : 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = main(process.argv.slice(2));
