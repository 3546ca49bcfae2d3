import { toJson } from '@bufbuild/protobuf';
import {
  type DeadLetter,
  DeadLetterSchema,
  ListQueuesResponseSchema,
  RedriveDeadLettersResponseSchema,
} from '@etude/contracts/gen/etude/v1/queues_pb';
import { type Cli, withGateway } from '../cli.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { firstLine, plural, table } from '../output.js';
import { when } from '../tasks/task-lines.js';

const PAGE_MAX = 1_000;

export function listQueues(cli: Cli): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const found = await gateway.queues.listQueues({}, { timeoutMs: cli.callTimeoutMs, signal: cli.signal });
    const rows = found.queues.map(({ name, waiting, active, delayed, dead, workers, oldestWaitingMs }) => [
      name,
      ...[waiting, active, delayed, dead, workers].map(String),
      oldestWaitingMs > 0n ? `${oldestWaitingMs} ms` : '-',
    ]);
    cli.out.data(
      toJson(ListQueuesResponseSchema, found),
      table([['QUEUE', 'WAITING', 'ACTIVE', 'DELAYED', 'DEAD', 'WORKERS', 'OLDEST'], ...rows]),
    );
    return EXIT.ok;
  });
}

const letterText = ({ id, code, reason, path, attempts, failTime }: DeadLetter) => [
  id,
  code,
  path || '-',
  String(attempts),
  when(failTime),
  firstLine(reason, 80),
];

export function deadLetters(cli: Cli, queue: string, limit: number): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const letters: DeadLetter[] = [];
    let pageToken = '';
    do {
      const request = { queue, pageSize: Math.min(limit - letters.length, PAGE_MAX), pageToken };
      const page = await gateway.queues.listDeadLetters(request, { timeoutMs: cli.callTimeoutMs, signal: cli.signal });
      letters.push(...page.deadLetters);
      pageToken = page.nextPageToken;
    } while (pageToken && letters.length < limit);
    const text = letters.length > 0 ? table([['JOB', 'CODE', 'PATH', 'ATTEMPTS', 'FAILED', 'REASON'], ...letters.map(letterText)]) : '';
    cli.out.data({ deadLetters: letters.map((letter) => toJson(DeadLetterSchema, letter)) }, text);
    if (letters.length === 0) cli.out.note(`no dead letters in ${queue}`);
    return EXIT.ok;
  });
}

export interface RedriveOptions {
  readonly all?: boolean;
}

export function redrive(cli: Cli, queue: string, ids: readonly string[], { all = false }: RedriveOptions): Promise<number> {
  if (all === ids.length > 0)
    throw new CliError(EXIT.usage, 'name the jobs to redrive, or give --all', [`./etude queues dead ${queue} lists them`]);
  return withGateway(cli, async (gateway) => {
    const done = await gateway.queues.redriveDeadLetters(
      { queue, ids: [...ids], all },
      { timeoutMs: cli.callTimeoutMs, signal: cli.signal },
    );
    const text = [`${plural(done.redriven, 'job')} back to work`, ...done.refused.map((line) => `refused: ${line}`)].join('\n');
    cli.out.data(toJson(RedriveDeadLettersResponseSchema, done), text);
    return done.refused.length > 0 ? EXIT.failed : EXIT.ok;
  });
}
