import { builtInOf, modelNameOf } from '@etude/contracts/embedder-names';
import { type Reembedding, ReembeddingSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { callSettings, poll, sayingHowToGoOn } from '../calls.js';
import { type Cli, commandLine, type Gateway, withGateway } from '../cli.js';
import { hand } from '../command.js';
import { recordEmbedder } from '../embedder/embedder.js';
import { CliError, EXIT } from '../errors.js';
import { findStack } from '../home/stack-state.js';
import { integer } from '../options.js';
import { show } from '../show.js';

interface ReembedOptions {
  readonly to?: string;
  readonly dimension?: number;
  readonly drop?: string;
  readonly stop?: boolean;
  readonly detach?: boolean;
}

export function reembedText({ model, state, done, total, error }: Omit<Reembedding, '$typeName'>): string {
  const head = model === '' ? 'nothing is being embedded again' : `${model}: ${state}, ${done} of ${total} records`;
  if (error === '') return head;
  return `${head}\n${state === 'running' ? 'held up, and tried again' : 'failed'}: ${error}`;
}

/** Polls until the move to another embedder is over or was stopped. Ctrl-C ends only the polling. */
export function embedded(cli: Cli, memory: Pick<Gateway['memory'], 'getReembedding'>, started: Reembedding): Promise<Reembedding> {
  const [look, stop] = [commandLine(cli, 'memory reembed'), commandLine(cli, 'memory reembed --stop')];
  return sayingHowToGoOn(
    cli,
    () =>
      poll(cli, started, {
        isOver: ({ state }) => state !== 'running',
        ask: () => memory.getReembedding({}, callSettings(cli)),
        status: reembedText,
      }),
    () => `the move goes on without this command; to see how far it is: ${look}; to stop it: ${stop}`,
  );
}

/** Records a built-in embedder, so that the local stack starts with it from now on. */
async function rememberEmbedder(cli: Cli, model: string): Promise<void> {
  const builtIn = builtInOf(model);
  if (builtIn !== null && cli.globals.address === undefined && (await findStack(cli.home)) !== null)
    recordEmbedder(cli.home, { builtIn, model: '' });
}

/** Without `to` and `drop`, shows or stops the move. `drop` alone first fills the last gaps of the vectors in use. */
async function reembed(cli: Cli, options: ReembedOptions): Promise<number> {
  const { to, drop, stop = false, detach = false } = options;
  return withGateway(cli, async ({ memory }) => {
    if (stop || (to === undefined && drop === undefined)) {
      const state = await (stop ? memory.stopReembedding({}, callSettings(cli)) : memory.getReembedding({}, callSettings(cli)));
      show(cli.out, ReembeddingSchema, state, reembedText(state));
      return state.state === 'failed' ? EXIT.failed : EXIT.ok;
    }
    const stats = await memory.getMemoryStats({}, callSettings(cli));
    const { embeddingModel: used } = stats;
    const target =
      to === undefined ? { model: used, dimension: stats.dimension } : { model: modelNameOf(to), dimension: options.dimension ?? 0 };
    const dropModel = drop === undefined ? '' : modelNameOf(drop);
    if (dropModel === used)
      throw new CliError(EXIT.conflict, `services search by the vectors of ${used}; restart them with another model first`);
    const started = await memory.startReembedding({ ...target, dropModel }, callSettings(cli));
    const state = detach ? started : await embedded(cli, memory, started);
    show(cli.out, ReembeddingSchema, state, reembedText(state));
    if (state.state === 'ready') {
      await rememberEmbedder(cli, state.model);
      if (used !== state.model) cli.out.note(`services search by ${used} still; what comes next is in docs/embeddings.md`);
    }
    return state.state === 'failed' ? EXIT.failed : EXIT.ok;
  });
}

export const REEMBED = hand<ReembedOptions>({
  command: 'reembed',
  help: 'for operators: move to another embedder, or say how far that is',
  flags: {
    '--to <model>': 'sentence, lexical, or a model of the embeddings server',
    '--dimension <n>': { help: 'of its vectors, where that is not known', parse: integer(1, 65_536) },
    '--drop <model>': 'drop the vectors of this one',
    '--stop': 'stop; the same command goes on later',
    '--detach': 'do not wait for its end',
  },
  run: reembed,
});
