// Builds the console into dist, which the gateway serves: `node apps/console/build.mjs`, after `tsc -b`. Does nothing if nothing changed.
import { existsSync, globSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const root = fileURLToPath(new URL('.', import.meta.url));
const index = join(root, 'dist/index.html');
const sources = ['{src,public}/**', '*.{html,json,mjs}', '../../libs/contracts/src/gen/**', '../../package-lock.json'];
const changed = (time) => globSync(sources, { cwd: root }).some((path) => statSync(join(root, path)).mtimeMs > time);

if (!existsSync(index) || changed(statSync(index).mtimeMs)) {
  // A test that starts this build sets another value, with which Vite would take React's development build.
  process.env.NODE_ENV = 'production';
  await build({
    root,
    configFile: false,
    base: '/console/',
    logLevel: 'error',
    resolve: { conditions: ['module', 'browser', 'production', 'default'] },
    build: {
      target: 'es2023',
      // A data: URL would need another rule of the Content-Security-Policy.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      // The test of the page's size measures each file itself.
      reportCompressedSize: false,
    },
  });
}
