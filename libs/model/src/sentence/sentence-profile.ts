import type { EmbedderProfile } from '@etude/domain/ports/model';
import { calibration } from '@etude/domain/retrieval/calibration';

/** Fitted by `etude memory calibrate` on the built-in pairs; docs/embeddings.md has the figures. */
const SENTENCE_ANCHORS = { unrelated: 0.32, sameTask: 0.493, sameWords: 0.933 };

export const SENTENCE_PROFILE: EmbedderProfile = {
  model: 'all-minilm-l6-v2',
  dimension: 384,
  denseWeight: 0.65,
  calibrate: calibration(SENTENCE_ANCHORS),
};

/** Longer texts are cut before they are tokenized. These characters fill all windows, and tokenizing 10 MiB would take seconds. */
export const TEXT_CHARS_MAX = 16_000;
