interface BatchLimits {
  readonly itemsMax?: number;
  /** The largest sum of the items' sizes. */
  readonly sizeMax?: number;
}

/** Groups items in their order, within both limits. An item larger than `sizeMax` gets a batch of its own. Yields no empty batch. */
export async function* batchesOf<T>(
  items: Iterable<T> | AsyncIterable<T>,
  { itemsMax = Infinity, sizeMax = Infinity }: BatchLimits,
  sizeOf: (item: T) => number = () => 1,
): AsyncGenerator<T[]> {
  let batch: T[] = [];
  let size = 0;
  for await (const item of items) {
    const more = sizeOf(item);
    if (batch.length > 0 && (batch.length >= itemsMax || size + more > sizeMax)) {
      yield batch;
      [batch, size] = [[], 0];
    }
    batch.push(item);
    size += more;
  }
  if (batch.length > 0) yield batch;
}
