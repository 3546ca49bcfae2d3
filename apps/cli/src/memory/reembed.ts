import { toJson } from '@bufbuild/protobuf';
import { builtInOf, embedderSetting, modelNameOf } from '@etude/contracts/embedder-names';
import { type Reembedding, ReembeddingSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { callSettings, poll, sayingHowToGoOn } from '../calls.js';
import { hand } from '../command.js';
import { integer } from '../options.js';
import { type Cli, commandLine, type Gateway, withGateway } from '../cli.js';
import { recordEmbedder } from '../embedder/embedder.js';
import { CliError, EXIT } from '../errors.js';
import { readStackState } from '../home/stack-state.js';

export interface ReembedOptions {
  readonly to?: string;
  readonly dimension?: number;
  readonly drop?: string;
  readonly stop?: boolean;
  readonly detach?: boolean;
}

/** What one call asks for, in the names under which memory keeps vectors. */
interface Move {
  readonly model: string;
  readonly dimension: number;
  /** '' for none. */
  readonly drop: string;
  /** What services search by now. */
  readonly used: string;
  /** "sqlite" or "qdrant". */
  readonly adapter: string;
}

const wrong = (message: string) => new CliError(EXIT.usage, message);

/** @throws CliError usage where the flags make no sense together */
export function checkFlags({ to, dimension, drop, stop = false }: ReembedOptions): void {
  if (stop && (to !== undefined || drop !== undefined || dimension !== undefined)) throw wrong('--stop goes with no other flag');
  if (dimension !== undefined && to === undefined) throw wrong('--dimension is of the model that --to names');
  if (to !== undefined && drop !== undefined && modelNameOf(to) === modelNameOf(drop))
    throw wrong(`--drop ${drop} would drop the vectors that --to ${to} asks for`);
}

export function reembedText({
  model,
  state,
  done,
  total,
  error,
}: Pick<Reembedding, 'model' | 'state' | 'done' | 'total' | 'error'>): string {
  const head = model === '' ? 'nothing is being embedded again' : `${model}: ${state}, ${done} of ${total} records`;
  if (error === '') return head;
  return `${head}\n${state === 'running' ? 'held up, and tried again' : 'failed'}: ${error}`;
}

/** What to do next; null for nothing. Only lines that can be repeated as they are. */
export function nextStep(cli: Pick<Cli, 'home' | 'globals' | 'settings'>, state: Reembedding['state'], move: Move): string | null {
  const { model, drop, used, adapter } = move;
  const line = (words: string) => commandLine(cli, words);
  if (state === 'stopped') return `the same again goes on: ${line(`memory reembed --to ${model}`)}`;
  if (state !== 'ready') return null;
  if (drop !== '') return `the vectors of ${drop} are dropped`;
  if (used === model) return `services search by ${model} already; vectors of another model go with ${line('memory reembed --drop MODEL')}`;
  return [
    `every record has vectors of ${model}; services search by ${used} still. Restart them with the new one, then drop the old ones:`,
    `  ${line('down')}`,
    `  ${embedderSetting(model)} ${line(adapter === 'qdrant' ? 'up --memory qdrant' : 'up')}`,
    `  ${line(`memory reembed --drop ${used}`)}`,
  ].join('\n');
}

/** Polls until it is over, or was stopped. Ctrl-C ends the polling alone. */
export function embedded(
  cli: Cli,
  { memory }: { readonly memory: Pick<Gateway['memory'], 'getReembedding'> },
  started: Reembedding,
): Promise<Reembedding> {
  const goesOn = `the move goes on without this command; to see how far it is: ${commandLine(cli, 'memory reembed')}; to stop it: ${commandLine(cli, 'memory reembed --stop')}`;
  return sayingHowToGoOn(
    cli,
    () =>
      poll(cli, started, {
        isOver: ({ state }) => state !== 'running',
        ask: () => memory.getReembedding({}, callSettings(cli)),
        status: reembedText,
      }),
    goesOn,
  );
}

/** The local stack starts with it from now on. */
function rememberEmbedder(cli: Cli, model: string): void {
  const builtIn = builtInOf(model);
  if (builtIn !== null && cli.globals.address === undefined && readStackState(cli.home) !== null)
    recordEmbedder(cli.home, { builtIn, model: '' });
}

function show(cli: Cli, state: Reembedding, next: string | null): number {
  cli.out.data(toJson(ReembeddingSchema, state, { alwaysEmitImplicit: true }), reembedText(state));
  if (next !== null) cli.out.note(next);
  return state.state === 'failed' ? EXIT.failed : EXIT.ok;
}

/** Without `to`, `drop` asks for what services search by now, whose last gaps are filled, and then drops. */
async function moveOf(cli: Cli, gateway: Gateway, { to, dimension = 0, drop }: ReembedOptions): Promise<Move> {
  const stats = await gateway.memory.getMemoryStats({}, callSettings(cli));
  const used = stats.embeddingModel;
  const target = to === undefined ? { model: used, dimension: stats.dimension } : { model: modelNameOf(to), dimension };
  return { ...target, drop: drop === undefined ? '' : modelNameOf(drop), used, adapter: stats.adapter };
}

/** With neither `to` nor `drop`: how far it is. */
async function reembed(cli: Cli, options: ReembedOptions): Promise<number> {
  checkFlags(options);
  const { to, drop, stop = false, detach = false } = options;
  return withGateway(cli, async (gateway) => {
    const { memory } = gateway;
    if (to === undefined && drop === undefined) {
      const state = await (stop ? memory.stopReembedding({}, callSettings(cli)) : memory.getReembedding({}, callSettings(cli)));
      return show(
        cli,
        state,
        state.state === 'stopped' ? nextStep(cli, 'stopped', { model: state.model, dimension: 0, drop: '', used: '', adapter: '' }) : null,
      );
    }
    const move = await moveOf(cli, gateway, options);
    if (move.drop !== '' && move.drop === move.used)
      throw new CliError(
        EXIT.conflict,
        `the vectors of ${move.drop} are those that services search by; restart them with another model first`,
      );
    const { model, dimension } = move;
    const started = await memory.startReembedding({ model, dimension, dropModel: move.drop }, callSettings(cli));
    const state = detach ? started : await embedded(cli, gateway, started);
    if (state.state === 'ready') rememberEmbedder(cli, state.model);
    return show(cli, state, nextStep(cli, state.state, move));
  });
}

export const REEMBED = hand<ReembedOptions>({
  command: 'reembed',
  help: 'for operators: move to another embedder while everything goes on; without --to and --drop, say how far it is',
  flags: {
    '--to <model>': 'sentence, lexical, or a model of the embeddings server',
    '--dimension <n>': { help: 'of its vectors, where that is not known', parse: integer(1, 65_536) },
    '--drop <model>': 'drop the vectors of this one, after --to where that is given',
    '--stop': 'stop; the same command goes on later',
    '--detach': 'do not wait for its end',
  },
  run: reembed,
});
