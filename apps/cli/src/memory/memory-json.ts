import { type DescMessage, type JsonValue, type MessageShape, toJson } from '@bufbuild/protobuf';

/** Proto JSON with every field, also those that are zero: whoever reads it need not know which are left out. */
export const wholeJson = <Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): JsonValue =>
  toJson(schema, message, { alwaysEmitImplicit: true });
