import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { type AnalyserLimits, RuffSecretlintAnalyser } from '../src/static-analyser.js';

const analyser = new RuffSecretlintAnalyser();

function limited(limits: AnalyserLimits): RuffSecretlintAnalyser {
  const own = new RuffSecretlintAnalyser(limits);
  onTestFinished(() => own.close());
  return own;
}
afterAll(() => analyser.close());

const found = async (code: string, language?: 'python' | 'text') =>
  (await analyser.analyse(code, undefined, language)).map(({ rule, severity, line }) => `${severity} ${rule} ${line}`);

/** Assembled here, so that no file of this repository holds a text that looks like a key. */
const TOKEN = `ghp_${'a1B2c3D4e5F6g7H8i9J0'.repeat(2).slice(0, 36)}`;

describe('dangerous code', () => {
  it.each([
    ['eval("1")', 'error suspicious-eval-usage 1'],
    ['exec("x = 1")', 'error exec-builtin 1'],
    ['import os\nos.system("ls")', 'error process-start 2'],
    ['from os import popen as quiet\nquiet("ls")', 'error process-start 1'],
    ['import subprocess\nsubprocess.run(["/bin/ls"])', 'error process-start 1'],
    ['import pickle\npickle.loads(b"")', 'error suspicious-pickle-usage 2'],
    ['import marshal\nmarshal.loads(b"")', 'error suspicious-marshal-usage 2'],
    ['from builtins import eval as e\ne("1")', 'error dynamic-code 1'],
    ['__import__("os").remove("x")', 'error dynamic-code 1'],
    ['().__class__.__base__.__subclasses__()', 'error dynamic-code 1'],
    ['().__class__.__base__.__ſubclasses__()', 'error dynamic-code 1'],
    ['import os\nos.system("ls")', 'error start-process-with-a-shell 2'],
    ['import os\nos.execv("/bin/ls", [])', 'error start-process-with-no-shell 2'],
    ['import subprocess\nsubprocess.run("ls", shell=True)', 'error subprocess-popen-with-shell-equals-true 2'],
    ['import subprocess\ndef f(a):\n    subprocess.run(a)', 'error subprocess-without-shell-equals-true 3'],
    ['def f(run):\n    run("ls", shell=True)', 'error call-with-shell-equals-true 2'],
    ['import os\nos.system("chown root *")', 'error unix-command-wildcard-injection 2'],
    ['import ctypes', 'error dynamic-code 1'],
    ['def f(:\n  pass', 'error invalid-syntax 1'],
    ['a = "\0', 'error invalid-syntax 1'],
  ])('%j is an error', async (code, finding) => {
    expect(await found(code)).toContain(finding);
  });

  it.each([
    'import socket',
    'from http import client',
    'import asyncio\nasyncio.open_connection("a", 1)',
    'def f():\n    import socket as quiet\n    return quiet.socket()',
  ])('%j is a warning', async (code) => {
    expect(await found(code)).toContainEqual(expect.stringMatching(/^warning network-use /));
  });

  it('reports the line of an undefined name', async () => {
    expect(await found('def f(a):\n    return a + b')).toEqual(['warning undefined-name 2']);
  });

  it('finds nothing in plain code', async () => {
    const code =
      'from skills import parse_csv\n\ndef total(text: str) -> int:\n    assert text\n    return sum(int(row[0]) for row in parse_csv(text))\n';
    expect(await found(code)).toEqual([]);
  });
});

describe('code with comments that disable rules', () => {
  it.each([
    'eval("1")  # noqa',
    '# ruff: noqa\neval("1")',
    '# flake8: noqa\neval("1")',
    '# x # ruff : disable[S307]\neval("1")',
    '# ruff: disable[suspicious-eval-usage]\neval("1")\n# ruff: enable[suspicious-eval-usage]',
    '# ruff: ignore[suspicious-eval-usage]\neval("1")',
    '# ruff: file-ignore[suspicious-eval-usage]\neval("1")',
    'eval("1")  # ruff: ignore[S307]',
  ])('%j is analysed', async (code) => {
    expect(await found(code)).toContainEqual(expect.stringMatching(/^error suspicious-eval-usage /));
  });
});

it('finds secrets in Python, and nothing else in other texts', async () => {
  expect(await found(`key = "${TOKEN}"\n`)).toContain('error secret/github 1');
  expect(await found(`# How to\n\nRun it with ${TOKEN}, then eval("1").\n`, 'text')).toEqual(['error secret/github 3']);
});

describe('text that attacks the analysers', () => {
  it.each([
    ['brackets', `x = ${'('.repeat(100_000)}`],
    ['sums', `x = ${'1+'.repeat(100_000)}1`],
  ])('nested %s are one error, and the next text is analysed', async (_, code) => {
    expect(await analyser.analyse(code)).toEqual([
      {
        analyser: 'etude',
        rule: 'not-analysed',
        severity: 'error',
        line: null,
        message: 'the code could not be analysed: it is nested too deep, or too large',
      },
    ]);
    expect(await found('eval("1")')).toEqual(['error suspicious-eval-usage 1']);
  });

  it('refuses a text that is too long', async () => {
    const small = limited({ charsMax: 10 });
    expect(await small.analyse('x = 1 + 2 + 3')).toMatchObject([
      { rule: 'not-analysed', message: expect.stringContaining('longer than 10') },
    ]);
  });

  it('stops after the time limit and analyses the next text', async () => {
    const hurried = limited({ wallMs: 1 });
    const slow = `x = [${'1, '.repeat(400_000)}]`;
    expect(await hurried.analyse(slow)).toMatchObject([{ rule: 'not-analysed', message: expect.stringContaining('longer than 1 ms') }]);
    expect(await hurried.analyse(slow)).toHaveLength(1);
  });

  it('stops at the memory limit', async () => {
    const small = limited({ memoryMiB: 32 });
    const large = `x = [${'f(a, b), '.repeat(200_000)}]`;
    expect(await small.analyse(large)).toMatchObject([{ rule: 'not-analysed', message: expect.stringContaining('too large') }]);
  });
});

describe('its life', () => {
  it('throws for a cancelled call', async () => {
    await expect(analyser.analyse('x = 1', AbortSignal.abort())).rejects.toMatchObject({ code: 'CANCELLED' });
    expect(await found('x = 1')).toEqual([]);
  });

  it('throws once it is closed', async () => {
    const closed = new RuffSecretlintAnalyser();
    await closed.close();
    await expect(closed.analyse('x = 1')).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
  });
});
