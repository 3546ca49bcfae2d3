import { type Diagnostic, PositionEncoding, Workspace } from '@astral-sh/ruff-wasm-nodejs';
import type { SkillFinding } from '@etude/contracts/skill-proof';
import { findSecrets } from './find-secrets.js';

export interface AnalyserTask {
  readonly text: string;
  readonly language: 'python' | 'text';
}

export type TextAnswer = { readonly findings: readonly SkillFinding[] } | { readonly failed: string };
export type ChildAnswer = 'ready' | TextAnswer;

type Severity = SkillFinding['severity'];

/** The rules of Ruff: flake8-bandit without its rule on assertions, undefined names, arguments shared between calls, and `API_KINDS`. */
const RUFF_RULES = { select: ['S', 'TID251', 'F821', 'F822', 'F823', 'B006', 'B009', 'B010', 'PLE', 'E9'], ignore: ['S101'] };

const words = (text: string) => text.trim().split(/\s+/);

/**
 * Rules of Ruff that are errors or notes; all other rules are warnings. An error prevents automatic approval. Errors are code that runs
 * other code, starts processes or unpacks objects that run code, and text that is not Python.
 */
const RUFF_SEVERITIES: Readonly<Partial<Record<Severity, readonly string[]>>> = {
  error: words(`
    invalid-syntax exec-builtin suspicious-eval-usage suspicious-pickle-usage suspicious-marshal-usage unsafe-yaml-load
    start-process-with-a-shell start-process-with-no-shell subprocess-popen-with-shell-equals-true
    subprocess-without-shell-equals-true call-with-shell-equals-true unix-command-wildcard-injection
  `),
  info: words(`
    suspicious-non-cryptographic-random-usage suspicious-xml-element-tree-usage hashlib-insecure-hash-function
    try-except-pass try-except-continue hardcoded-temp-file
  `),
};

/** Modules and members without a rule of Ruff, found under any imported name. A module includes all its members. */
const API_KINDS: Readonly<Record<string, { severity: Severity; message: string; apis: readonly string[] }>> = {
  'network-use': {
    severity: 'warning',
    message: 'uses the network, which a sandbox does not have',
    apis: words(`
      socket socketserver _socket ssl urllib.request http.client http.server xmlrpc wsgiref ftplib smtplib poplib
      imaplib nntplib telnetlib webbrowser asyncore asynchat smtpd asyncio.open_connection asyncio.start_server
      asyncio.open_unix_connection asyncio.start_unix_server asyncio.streams multiprocessing.connection
      logging.handlers urllib3 requests httpx aiohttp websockets websocket paramiko pycurl boto3 botocore grpc
      pymongo redis psycopg psycopg2
    `),
  },
  'process-start': {
    severity: 'error',
    message: 'starts processes, or signals them',
    apis: words(`
      subprocess _posixsubprocess posix pty multiprocessing asyncio.create_subprocess_exec
      asyncio.create_subprocess_shell asyncio.subprocess concurrent.futures.ProcessPoolExecutor os.system os.popen
      os.fork os.forkpty os.posix_spawn os.posix_spawnp os.kill os.killpg
    `),
  },
  'dynamic-code': {
    severity: 'error',
    message: 'reaches code that is not in the text',
    apis: ['builtins', 'importlib', 'imp', 'runpy', 'code', 'codeop', 'ctypes', 'cffi', 'pkgutil', 'zipimport', 'dill', 'cloudpickle'],
  },
  'environment-use': {
    severity: 'warning',
    message: 'depends on the environment that it runs in',
    apis: ['os.environ', 'os.getenv', 'os.putenv'],
  },
};

/** Names by which code reaches functions indirectly; Ruff has no rule for them. */
const HIDDEN_NAMES = /\b(?:__import__|__builtins__|__globals__|__subclasses__|__loader__|__code__)\b/g;

const banned = Object.entries(API_KINDS).flatMap(([kind, { apis }]) => apis.map((api) => [api, { msg: kind }] as const));
/** Preview mode also finds functions that are passed on and not called, as in `map(eval, lines)`. It gives rules names instead of numbers. */
const LINT = {
  preview: true,
  'explicit-preview-rules': true,
  ...RUFF_RULES,
  'flake8-tidy-imports': { 'banned-api': Object.fromEntries(banned) },
};
const workspace = new Workspace({ 'target-version': 'py314', lint: LINT }, PositionEncoding.Utf32);

/** Throws for a text that is nested too deep, after which the process must not be used again. */
function findInPython(code: string): readonly SkillFinding[] {
  const diagnostics = workspace.check(unsuppressed(code)) as Diagnostic[];
  return [...diagnostics.map(findingOf), ...hiddenNames(code)];
}

/** Disables the comments in a text that would suppress findings. All positions stay the same. */
function unsuppressed(code: string): string {
  return code
    .replaceAll(/noqa/gi, 'n0qa')
    .replaceAll(/(#[^\S\n]*)(?:ruff|isort|flake8|pylint)(?=[^\S\n]*:)/gi, (all) => all.replace(/\w/g, '_'));
}

function findingOf({ code, message, start_location: { row } }: Diagnostic): SkillFinding {
  const rule = code ?? 'invalid-syntax';
  const kind = rule === 'banned-api' ? /^(.+) is banned: (\S+)$/s.exec(message) : null;
  const api = kind && API_KINDS[kind[2]!];
  if (api) return { analyser: 'ruff', rule: kind[2]!, severity: api.severity, line: row, message: `${kind[1]} ${api.message}` };
  const severity = (['error', 'info'] as const).find((one) => RUFF_SEVERITIES[one]?.includes(rule)) ?? 'warning';
  return { analyser: 'ruff', rule, severity, line: row, message };
}

/** Normalises lines to NFKC, as Python does with names: for Python, different characters can be the same letter. */
function hiddenNames(code: string): SkillFinding[] {
  return code.split('\n').flatMap((line, index) =>
    [...new Set(line.normalize('NFKC').match(HIDDEN_NAMES))].map((name) => ({
      analyser: 'etude',
      rule: 'dynamic-code',
      severity: 'error' as const,
      line: index + 1,
      message: `\`${name}\` reaches code that is not in the text`,
    })),
  );
}

function answerTo({ text, language }: AnalyserTask): TextAnswer {
  try {
    return { findings: [...(language === 'python' ? findInPython(text) : []), ...findSecrets(text)] };
  } catch (error) {
    // The stack of this process or the memory of the analyser is exhausted.
    const isTooMuch = ['RangeError', 'RuntimeError'].includes((error as Error).name);
    return { failed: isTooMuch ? 'it is nested too deep, or too large' : String(error).slice(0, 200) };
  }
}

const answer = (message: ChildAnswer) => process.send?.(message);

// Warms up, since the first text takes most of a second.
findInPython('pass\n');
process.once('disconnect', () => process.exit(0));
process.on('message', (task: AnalyserTask) => answer(answerTo(task)));
answer('ready');
