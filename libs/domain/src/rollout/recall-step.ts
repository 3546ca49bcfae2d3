import type { RecalledItem } from '@etude/contracts/memory';
import { recall, recallsNothing } from '../recall/recall.js';
import { isInWords } from '../skills/content-digest.js';
import { isProven } from '../skills/proof/proof.js';
import { withheldItems } from './item-shows.js';
import type { RolloutContext } from './rollout-context.js';

/** The layers to recall from. Skills aren't shown where they are off for the agent. */
export async function layersShown({ spec: { memory }, settings }: RolloutContext): Promise<typeof memory.layers> {
  const { enabled } = await settings();
  return memory.layers.filter((layer) => layer !== 'procedural' || enabled);
}

/** The cue joins the model's draft or critique with the task's own words, since memories of the task often use those. */
export async function recallStep(context: RolloutContext, attempt: number, opening: string): Promise<readonly RecalledItem[]> {
  const { steps, deps, spec, scope, rolloutId } = context;
  const { memory } = spec;
  if (recallsNothing(memory)) return [];
  return steps.run(`a${attempt}.recall`, 'recall', async () => {
    const policy = { ...memory, layers: await layersShown(context) };
    const { items: value, offered } = await recall(
      {
        scope,
        cue: `${opening}\n\n${spec.prompt}`,
        policy,
        rolloutId,
        ...(deps.promptBudgets === undefined ? {} : { tokensMax: deps.promptBudgets.memory }),
        // Skills in words need no proof, because only code is run.
        withhold: (found) => withheldItems(context, attempt, found),
        shows: (skill) => isInWords(skill) || isProven(skill, deps.checker),
      },
      deps.withholding === undefined ? deps : { ...deps, counters: deps.withholding.counters },
    );
    if (offered.length > 0 && !memory.readOnly) await deps.procedural.countOffers(offered);
    const titles = value.map(({ title }) => title).join(', ');
    return { value, summary: value.length === 0 ? 'nothing recalled' : `recalled ${titles.slice(0, 200)}` };
  });
}
