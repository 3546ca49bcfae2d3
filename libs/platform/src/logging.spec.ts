import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Writable } from 'node:stream';
import { EtudeError } from '@etude/contracts/errors';
import { expect, it } from 'vitest';
import { createLogger } from './logging.js';

function logged(write: (logger: ReturnType<typeof createLogger>) => void): string {
  let text = '';
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      done();
    },
  });
  write(createLogger('test', { ETUDE_LOG_LEVEL: 'trace' }, sink));
  return text;
}

it('removes secrets, code and prompts down to the third level', () => {
  const text = logged((logger) =>
    logger.info(
      { authorization: 'S1', spec: { prompt: 'S2', evaluator: { tests: 'S3' } }, job: { data: { run: { code: 'S4' } } }, apiKey: 'S5' },
      'hello',
    ),
  );
  expect(text).not.toMatch(/S\d/);
  expect(text).toContain('hello');
});

it('logs the code of an error', () => {
  const text = logged((logger) =>
    logger.error({ err: new EtudeError('MEMORY_FULL', 'no space', {}, { cause: new Error('ENOSPC') }) }, 'failed'),
  );
  expect(text).toContain('MEMORY_FULL');
  expect(text).toContain('ENOSPC');
});

it('lets a process end although nobody reads its stdout any more', async () => {
  const program = `
    import { createLogger } from '@etude/platform/logging';
    const logger = createLogger('test', { ETUDE_LOG_LEVEL: 'info' });
    process.stdin.once('data', () => {
      logger.info('first');
      logger.warn('last');
      process.exit(7);
    });
    process.stderr.write('ready');`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { cwd: import.meta.dirname });
  await once(child.stderr, 'data');
  child.stdout.destroy();
  await once(child.stdout, 'close');
  child.stdin.write('go');
  expect(await once(child, 'exit')).toEqual([7, null]);
});
