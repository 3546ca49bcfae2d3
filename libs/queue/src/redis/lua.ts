import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The scripts are read from `src`, because the compiler copies no `.lua` files. The path is the same from `src/redis` and `dist/redis`. */
const SOURCES = fileURLToPath(new URL('../../src/', import.meta.url));
const PRELUDE = 'redis/prelude.lua';
const DECLARED = /^function scripts\.(\w+)\(\)/gm;

type Scripts = Readonly<Record<string, { readonly lua: string }>>;
let loaded: Scripts | undefined;

/**
 * Reads every `.lua` file of this package once. Each `function scripts.NAME()` in a file becomes one script: the prelude, the whole
 * file, and a call of that function. ioredis sends scripts by digest.
 *
 * @throws Error where two files declare the same name
 */
export function loadScripts(): Scripts {
  return (loaded ??= readScripts());
}

function readScripts(): Scripts {
  const prelude = readFileSync(join(SOURCES, PRELUDE), 'utf8');
  const scripts: Record<string, { lua: string }> = {};
  for (const file of globSync('*/*.lua', { cwd: SOURCES })) {
    const text = readFileSync(join(SOURCES, file), 'utf8');
    for (const [, name = ''] of text.matchAll(DECLARED)) {
      if (name in scripts) throw new Error(`the Lua script "${name}" of ${file} is declared twice`);
      scripts[name] = { lua: `${prelude}\n${text}\nreturn scripts.${name}()\n` };
    }
  }
  return scripts;
}
