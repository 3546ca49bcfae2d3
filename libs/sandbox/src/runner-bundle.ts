import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { EtudeError } from '@etude/contracts/errors';

const run = promisify(execFile);
const RUNNER = fileURLToPath(new URL('../runner/', import.meta.url));
const INSTALL = 'apt-get install -y bubblewrap python3';

export interface Interpreter {
  /** The runner, compiled for exactly this interpreter. */
  readonly bundle: Buffer;
  readonly safePath: boolean;
}

/**
 * Compiles the runner with the sandbox's own Python, so that no sandbox has to parse it again.
 *
 * @throws EtudeError SANDBOX_CONTROL_MISSING without a usable Python, with the command that installs it
 */
export async function buildBundle(pythonPath: string): Promise<Interpreter> {
  const script = `import sys;v=sys.version_info;sys.stdout.write("%d.%d\\n" % v[:2]);sys.stdout.flush();sys.path.insert(0,${JSON.stringify(RUNNER)});import bundle;sys.stdout.buffer.write(bundle.build(${JSON.stringify(RUNNER)}))`;
  const { stdout } = await run(pythonPath, ['-I', '-S', '-B', '-c', script], { encoding: 'buffer', maxBuffer: 16 * 1024 * 1024 }).catch(
    (error: Error) => {
      throw missing(`Python at ${pythonPath} does not work: ${error.message}`);
    },
  );
  const newline = stdout.indexOf('\n');
  const [major = 0, minor = 0] = stdout.subarray(0, newline).toString().split('.').map(Number);
  if (major < 3 || minor < 10) throw missing(`Python at ${pythonPath} is ${major}.${minor}, but 3.10 or newer is needed`);
  return { bundle: Buffer.from(stdout.subarray(newline + 1)), safePath: minor >= 11 };
}

/**
 * The version of bubblewrap, as [major, minor].
 *
 * @throws EtudeError SANDBOX_CONTROL_MISSING without bubblewrap, with the command that installs it
 */
export async function bubblewrapVersion(bwrapPath: string): Promise<readonly [number, number]> {
  const { stdout } = await run(bwrapPath, ['--version']).catch((error: Error) => {
    throw missing(`bubblewrap at ${bwrapPath} does not work: ${error.message}`);
  });
  const found = /(\d+)\.(\d+)/.exec(stdout);
  return [Number(found?.[1] ?? 0), Number(found?.[2] ?? 0)];
}

function missing(what: string): EtudeError {
  return new EtudeError('SANDBOX_CONTROL_MISSING', `${what.trim()}. Run: ${INSTALL}`, { metadata: { install: INSTALL } });
}
