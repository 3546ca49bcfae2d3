import { parseArgs } from 'node:util';
import { loadScript } from './script.js';
import { startScriptedModel } from './scripted-server.js';

const USAGE = 'usage: scripted-main --script FILE [--port N] [--host ADDRESS] [--check]   (port 0, the default: any free one)';

/** Serves a script until SIGTERM or SIGINT. Prints one JSON line with its address when ready. With --check it only reads the script. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      script: { type: 'string' },
      port: { type: 'string', default: '0' },
      host: { type: 'string', default: '127.0.0.1' },
      check: { type: 'boolean', default: false },
    },
  });
  const port = Number(values.port);
  if (!values.script) throw new Error(`--script is missing\n${USAGE}`);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error(`--port must be 0 to 65535, not ${values.port}\n${USAGE}`);
  if (values.check) return void (await loadScript(values.script));
  const running = await startScriptedModel({ scriptPath: values.script, port, host: values.host });
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
