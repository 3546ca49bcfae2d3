import type { JsonObject, MessageInitShape } from '@bufbuild/protobuf';
import type { CallToolResponseSchema } from '@etude/contracts/gen/etude/v1/tools_pb';
import type { ToolOutcome } from '@etude/domain/tools/tool-definition';

/** Converts a value to plain JSON: drops undefined, and turns NaN and infinite numbers into null. */
export const plainJson = (value: unknown) => JSON.parse(JSON.stringify(value)) as JsonObject;

export function outcomeMessage(outcome: ToolOutcome): MessageInitShape<typeof CallToolResponseSchema> {
  if (outcome.success) return { success: true, result: plainJson(outcome.result) };
  const { error, result } = outcome;
  return { success: false, error, ...(result === undefined ? {} : { result: plainJson(result), ...wishOf(result) }) };
}

/** The fields of a skill request, which callers expect beside `success` and `error`. */
function wishOf({ skill_request_submitted: skillRequestSubmitted, request_id: requestId }: Readonly<Record<string, unknown>>) {
  if (typeof skillRequestSubmitted !== 'boolean') return {};
  return { skillRequestSubmitted, ...(typeof requestId === 'string' ? { requestId } : {}) };
}
