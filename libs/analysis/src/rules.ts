import type { SkillFinding } from '@etude/contracts/skill-proof';

type Severity = SkillFinding['severity'];

/** What Ruff looks for: flake8-bandit but for assertions, names that do not exist, arguments shared between calls, and `API_KINDS`. */
export const RUFF_RULES = { select: ['S', 'TID251', 'F821', 'F822', 'F823', 'B006', 'B009', 'B010', 'PLE', 'E9'], ignore: ['S101'] };

/**
 * How much a rule of Ruff weighs, by its name. An error keeps a skill from being approved automatically: code that runs other code,
 * starts processes or unpacks objects that run code, and text that is no Python. What is not named here is a warning.
 */
export const RUFF_SEVERITY: Readonly<Record<string, Severity>> = {
  'invalid-syntax': 'error',
  'exec-builtin': 'error',
  'suspicious-eval-usage': 'error',
  'suspicious-pickle-usage': 'error',
  'suspicious-marshal-usage': 'error',
  'unsafe-yaml-load': 'error',
  'start-process-with-a-shell': 'error',
  'start-process-with-no-shell': 'error',
  'subprocess-popen-with-shell-equals-true': 'error',
  'subprocess-without-shell-equals-true': 'error',
  'call-with-shell-equals-true': 'error',
  'unix-command-wildcard-injection': 'error',
  'suspicious-non-cryptographic-random-usage': 'info',
  'suspicious-xml-element-tree-usage': 'info',
  'hashlib-insecure-hash-function': 'info',
  'try-except-pass': 'info',
  'try-except-continue': 'info',
  'hardcoded-temp-file': 'info',
};

const words = (text: string) => text.trim().split(/\s+/);

interface ApiKind {
  readonly severity: Severity;
  readonly message: string;
  /** Modules and their members; a module stands for all that is in it. */
  readonly apis: readonly string[];
}

/** Modules that Ruff has no rule of its own for; it finds them by any name that they are imported under. */
export const API_KINDS: Readonly<Record<string, ApiKind>> = {
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

/** Names by which code gets at functions without saying which; Ruff has no rule for them. */
export const HIDDEN_NAMES = /\b(?:__import__|__builtins__|__globals__|__subclasses__|__loader__|__code__)\b/g;

export const SECRETLINT = 'secretlint';
export const RUFF = 'ruff';
