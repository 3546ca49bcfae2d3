import { existsSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Lets a process of a test run the sources without a build: `./x.js` means `./x.ts` where only `./x.ts` exists. */
registerHooks({
  resolve(specifier, context, next) {
    const source =
      specifier.startsWith('.') && specifier.endsWith('.js') ? new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL) : null;
    return next(source !== null && existsSync(fileURLToPath(source)) ? source.href : specifier, context);
  },
});
