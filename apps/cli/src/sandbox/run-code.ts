import { Language } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { type Cli, withGateway } from '../cli.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { readArgument } from '../files.js';
import { outcomeExit, showExecution } from './execution.js';
import { openSandbox } from './manage-sandboxes.js';
import { ridingOut } from './ride-out.js';
import { type CreateOptions, type LimitOptions, limitsOf, sandboxResource } from './sandbox-request.js';

export interface CodeOptions {
  readonly shell?: boolean;
  /** For the command: text, `@FILE` or `-`. */
  readonly stdin?: string;
  readonly saveDisplays?: string;
}

export interface ExecOptions extends CodeOptions, LimitOptions {
  readonly executionId?: string;
  readonly resume?: string;
}

async function codeOf(code: string | undefined, resume: string | undefined): Promise<string> {
  if (code !== undefined) return readArgument(code);
  if (resume !== undefined) return '';
  throw new CliError(EXIT.usage, 'there is no code to run', ['give it as CODE, @FILE, or - for stdin']);
}

async function executionOf(name: string, code: string | undefined, options: CodeOptions, resume?: string) {
  const stdin = options.stdin === undefined ? '' : await readArgument(options.stdin);
  const language = options.shell ? Language.SHELL : Language.PYTHON;
  return { name, language, code: await codeOf(code, resume), stdin };
}

/** `sandbox exec`: 0 where the code did what it should, 1 where it did not, 130 where Ctrl-C ended it. */
export async function execCode(cli: Cli, sandbox: string, code: string | undefined, options: ExecOptions): Promise<number> {
  const base = await executionOf(sandboxResource(sandbox), code, options, options.resume);
  const { executionId = '', resume: resumeToken = '' } = options;
  if (resumeToken && !executionId) throw new CliError(EXIT.usage, '--resume needs --execution-id, whose execution it goes on with');
  return withGateway(cli, async (gateway) => {
    const execution = { ...base, executionId, resumeToken, limits: limitsOf(options) };
    const outcome = await showExecution(cli, gateway, execution, { ...options, cancel: cli.signal });
    return cli.signal.aborted ? EXIT.interrupted : outcomeExit(outcome);
  });
}

/** `sandbox run`: a sandbox of its own for one piece of code, closed however that ends. */
export async function runCode(cli: Cli, code: string, options: CreateOptions & CodeOptions): Promise<number> {
  const base = await executionOf('', code, options);
  return withGateway(cli, async (gateway) => {
    cli.out.status('waiting for a sandbox');
    const { name } = await openSandbox(cli, gateway, options);
    cli.out.status('');
    try {
      const outcome = await showExecution(cli, gateway, { ...base, name }, { ...options, cancel: cli.signal });
      return cli.signal.aborted ? EXIT.interrupted : outcomeExit(outcome);
    } finally {
      const never = new AbortController().signal;
      await ridingOut(never, () => gateway.sandboxes.closeSandbox({ name }, { timeoutMs: cli.callTimeoutMs }));
    }
  });
}
