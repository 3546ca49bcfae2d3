import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const SCRIPT = fileURLToPath(new URL('../mcp-clients/client.py', import.meta.url));
const CACHE = join(ROOT, '.etude', 'cache', 'mcp-clients');
const PYTHON_CLIENT = 'mcp==2.3.0';
const INSPECTOR = '@modelcontextprotocol/inspector@2.12.0';
const INSTALL_TIMEOUT_MS = 300_000;
const RUN_TIMEOUT_MS = 100_000;

/** Somebody else's client of MCP, installed once; or why it could not be. */
export type Installed = { readonly path: string } | { readonly why: string };

/** Several may install it at once; the first stays. */
async function once(name: string, install: (folder: string) => Promise<unknown>, file: string): Promise<Installed> {
  const made = join(CACHE, name.replaceAll(/[^a-z0-9.=-]/gi, '_'));
  if (existsSync(join(made, file))) return { path: join(made, file) };
  await mkdir(CACHE, { recursive: true });
  const making = `${made}.${process.pid}`;
  try {
    await install(making);
    await rename(making, made).catch((error: unknown) => {
      if (!existsSync(join(made, file))) throw error;
    });
    return { path: join(made, file) };
  } catch (error) {
    return {
      why: `${name} could not be installed: ${String((error as { stderr?: string }).stderr || error)
        .trim()
        .split('\n')
        .at(-1)}`,
    };
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}

/** A Python with the protocol's official client. */
export function pythonMcpClient(): Promise<Installed> {
  const install = async (folder: string) => {
    await run('python3', ['-m', 'venv', folder], { timeout: INSTALL_TIMEOUT_MS });
    await run(join(folder, 'bin', 'python'), ['-m', 'pip', 'install', '-q', '--only-binary', ':all:', PYTHON_CLIENT], {
      timeout: INSTALL_TIMEOUT_MS,
    });
  };
  return once(PYTHON_CLIENT, install, join('bin', 'python'));
}

/** The protocol's own inspector. Its scripts are not run, and it gets a folder of its own. */
export function mcpInspector(): Promise<Installed> {
  const install = async (folder: string) => {
    await mkdir(folder, { recursive: true });
    const args = ['install', '--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', folder, INSPECTOR];
    await run('npm', args, { timeout: INSTALL_TIMEOUT_MS, cwd: folder });
  };
  const file = join('node_modules', '@modelcontextprotocol', 'inspector', 'clients', 'launcher', 'build', 'index.js');
  return once(INSPECTOR, install, file);
}

export interface PythonAnswer {
  readonly protocolVersion: string;
  readonly serverInfo: { readonly name: string };
  /** In the order of the calls; one that failed is `{error}`. */
  readonly answers: ReadonlyArray<Readonly<Record<string, unknown>>>;
}

/** Where a server is. */
export type McpPlace =
  | { readonly url: string; readonly headers: Readonly<Record<string, string>> }
  | { readonly command: string; readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> };

/** @param mode "legacy", "auto", or a revision */
export async function askWithPython(python: string, place: McpPlace, mode: string, calls: readonly object[]): Promise<PythonAnswer> {
  const where = 'url' in place ? ['--url', place.url, '--headers', JSON.stringify(place.headers)] : ['--stdio', JSON.stringify(place)];
  const args = [SCRIPT, '--mode', mode, ...where, '--calls', JSON.stringify(calls)];
  const { stdout } = await run(python, args, { timeout: RUN_TIMEOUT_MS, env: { PATH: process.env['PATH'], HOME: process.env['HOME'] } });
  return JSON.parse(stdout) as PythonAnswer;
}

/**
 * One request by the inspector's command line.
 *
 * @param more such as `--method tools/list`
 */
export async function inspect(inspector: string, place: McpPlace, more: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  const headers = 'url' in place ? Object.entries(place.headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`]) : [];
  const where =
    'url' in place
      ? [place.url, '--transport', 'http', ...headers]
      : Object.entries(place.env).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
  const behind = 'url' in place ? [] : ['--', place.command, ...place.args];
  const env = { PATH: process.env['PATH'], HOME: CACHE };
  return run(process.execPath, [inspector, '--cli', ...where, ...more, ...behind], { timeout: RUN_TIMEOUT_MS, env });
}
