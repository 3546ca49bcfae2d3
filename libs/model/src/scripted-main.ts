import { parseArgs } from 'node:util';
import { loadScript } from './script.js';
import { startScriptedModel } from './scripted-server.js';

const USAGE = 'usage: scripted-main --script FILE [--port N]   (port 0, the default: any free one)';

/** Serves a script until SIGTERM or SIGINT. Prints one JSON line with its address when ready. */
async function main(): Promise<void> {
  const { values } = parseArgs({ options: { script: { type: 'string' }, port: { type: 'string', default: '0' } } });
  const port = Number(values.port);
  if (!values.script || !(port >= 0 && port <= 65_535)) throw new Error(USAGE);
  const running = await startScriptedModel({ script: await loadScript(values.script), source: values.script, port });
  const stop = () => void running.close();
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  process.stdout.write(
    `${JSON.stringify({ ready: true, service: 'scripted-model', url: running.url, port: running.port, model: running.model, pid: process.pid })}\n`,
  );
}

main().catch((error: unknown) => {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 2;
});
