// `node docker/production-files.mjs NPM FOLDER`, after a build, copies into the folder what the services need at run time:
// Node.js, the production packages without unused files, the built services, and a list of all packages in SPDX.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const APPS = ['gateway', 'rollout-worker', 'consolidation-worker', 'sandbox-controller', 'cli'];
const [npm = 'npm', out = ''] = process.argv.slice(2);
const [command = 'npm', ...words] = npm.split(' ');
const production = ['--omit=dev', ...APPS.flatMap((name) => ['-w', `apps/${name}`])];
const callNpm = (...args) => execFileSync(command, [...words, ...args], { cwd: out, encoding: 'utf8', maxBuffer: 2 ** 28 });
const copy = (path, to = path) => cpSync(path, join(out, to), { recursive: true, verbatimSymlinks: true });

mkdirSync(join(out, 'bin'), { recursive: true });
for (const path of ['package-lock.json', 'package.json', ...globSync('{apps,libs,test}/*/package.json'), 'bench/package.json']) copy(path);
callNpm('ci', '--ignore-scripts', '--no-audit', '--no-fund', ...production);
writeFileSync(join(out, 'sbom.spdx.json'), sbom());

// Node.js is a package too, built for this platform.
copy(process.execPath, 'bin/node');
chmodSync(join(out, 'bin/node'), 0o755);
execFileSync('strip', [join(out, 'bin/node')]);
for (const path of globSync([`{apps/{${APPS.join()}},libs/*}/dist`, 'libs/{domain/python,sandbox/runner,model/graphs,model/pairs}']))
  copy(path);
copy('apps/console/dist');
for (const path of globSync('libs/*/src/**/*.{lua,sql,json}')) copy(path);
copy('LICENSE');

const platform = `${process.platform}/${process.arch}`;
const unused = [
  'node_modules/{typescript,@types,@resvg,dejavu-fonts-ttf,.bin,.package-lock.json}',
  '{.,apps/*,libs/*}/node_modules/**/*.{d.ts,d.mts,d.cts,map,md,markdown,tsbuildinfo}',
  'node_modules/{rxjs,zod,luxon}/src',
  'node_modules/{*,@*/*}/{test,tests,benchmarks,example,examples,docs}',
  'node_modules/bare-*/prebuilds',
  'node_modules/{rxjs/dist/{bundles,esm5},bullmq/dist/esm,luxon/build/{amd,global,cjs-browser}}',
  '{apps,libs}/*/dist/**/*.{d.ts,map,spec.js}',
  '{test,bench}',
];
const binaries = globSync('node_modules/onnxruntime-node/bin/napi-v*/*/*', { cwd: out }).filter((path) => !path.endsWith(platform));
for (const path of [...globSync(unused, { cwd: out }), ...binaries]) rmSync(join(out, path), { recursive: true, force: true });

/** The list of packages. Its name comes from the lock and its time is fixed, so that equal packages give equal files. */
function sbom() {
  const list = JSON.parse(callNpm('sbom', '--package-lock-only', '--sbom-format', 'spdx', ...production));
  const digest = createHash('sha256')
    .update(readFileSync(join(out, 'package-lock.json')))
    .digest('hex');
  return JSON.stringify({
    ...list,
    documentNamespace: `https://spdx.org/spdxdocs/etude-${digest}`,
    creationInfo: { ...list.creationInfo, created: '1970-01-01T00:00:00Z' },
  });
}
