/** The most executions of one tenant that one process has in the first line at once. */
export const FIRST_LINE_MAX = 4;

export interface PlaceInLine {
  /** Whether it is in the first line. */
  readonly isFirst: boolean;
  /** Call it once, when nobody waits for the execution any more. */
  leave(): void;
}

interface Place {
  isFirst: boolean;
  readonly moveUp: () => void;
}

/**
 * Two lines of executions, so that tenants take turns. Each tenant has at most FIRST_LINE_MAX executions in the first line and the rest
 * in the second. The second is served while nobody waits in the first. When an execution ends, its tenant's oldest one in the second
 * line moves up. So an execution waits at most for a few of each other tenant, and a tenant with many still makes progress.
 *
 * Each process counts only its own executions.
 */
export class ExecutionLines {
  readonly #places = new Map<string, Place[]>();

  /** @param moveUp called at most once, when the execution moves from the second line into the first */
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
