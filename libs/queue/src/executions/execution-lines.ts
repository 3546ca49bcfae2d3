/** Executions of one tenant that one process has in the first line at once. */
export const FIRST_LINE_MAX = 4;

/** The place of one execution that somebody waits for. */
export interface PlaceInLine {
  /** Whether it waits among those that are taken first. */
  readonly isFirst: boolean;
  /** Once, when nobody waits any more. */
  leave(): void;
}

interface Place {
  isFirst: boolean;
  readonly moveUp: () => void;
}

/**
 * Two lines of waiting executions. Each tenant has at most a few in the first line, and the rest in the second, which is served while the
 * first is empty. When one execution of a tenant has ended, its oldest in the second line moves up. So a tenant with few executions waits
 * behind a few of each other tenant, and one with many still gets on.
 *
 * Counted in this process alone: each sender has its own few.
 */
export class ExecutionLines {
  readonly #places = new Map<string, Place[]>();

  /** @param moveUp called at most once, when it comes from the second line into the first */
  enter(tenant: string, moveUp: () => void): PlaceInLine {
    const places = this.#places.get(tenant) ?? [];
    const place: Place = { isFirst: places.length < FIRST_LINE_MAX, moveUp };
    this.#places.set(tenant, places);
    places.push(place);
    return {
      get isFirst() {
        return place.isFirst;
      },
      leave: () => this.#leave(tenant, place),
    };
  }

  #leave(tenant: string, place: Place): void {
    const left = (this.#places.get(tenant) ?? []).filter((one) => one !== place);
    if (left.length === 0) this.#places.delete(tenant);
    else this.#places.set(tenant, left);
    const next = left[FIRST_LINE_MAX - 1];
    if (next === undefined || next.isFirst) return;
    next.isFirst = true;
    next.moveUp();
  }
}
