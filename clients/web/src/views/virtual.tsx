// A long list of which only the visible part is in the document.

import {
  elementScroll, observeElementOffset, observeElementRect, Virtualizer, type VirtualizerOptions,
} from "@tanstack/virtual-core";
import { Component, type ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useReducer, useRef } from "preact/hooks";

interface Props {
  count: number;
  keyOf: (index: number) => string;
  render: (index: number) => ComponentChildren;
  /** What a row shows: it is not drawn again while all of this stays the same. Without it, each row always is. */
  dependsOn?: (index: number) => readonly unknown[];
  estimate: number;
  label: string;
  class?: string;
  /** Stay at the end while rows arrive, unless the person has scrolled up. */
  follow?: boolean;
  /** Scroll to this row once, so that it is in the middle or, with `align`, at the top. */
  target?: number | null;
  align?: "center" | "start";
  /** Changes to scroll to the same row once more. */
  attempt?: number;
  role?: "feed" | "list";
  /** Changes when other rows are shown in the same list. */
  id: string;
}

const NEAR_PX = 80;

export function VirtualList({ count, keyOf, render, dependsOn, estimate, label, class: name, follow = false, target = null, align = "center", attempt = 0, role = "list", id }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const [, update] = useReducer((version: number) => version + 1, 0);
  const instance = useRef<Virtualizer<HTMLDivElement, HTMLDivElement> | undefined>(undefined);
  const atEnd = useRef(follow);
  const counted = useRef(count);
  const seen = useRef({ top: 0, height: 0 });
  const reached = useRef<string | null>(null);
  const latest = useRef({ keyOf, estimate });
  latest.current = { keyOf, estimate };
  // The places of all rows are computed again if these functions are others.
  const getItemKey = useCallback((index: number) => latest.current.keyOf(index), [id, count]);
  const estimateSize = useCallback(() => latest.current.estimate, []);
  const options: VirtualizerOptions<HTMLDivElement, HTMLDivElement> = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize,
    getItemKey,
    overscan: 6,
    // Rows are drawn at once, and not after the browser has laid out a list without them: no list is higher than this.
    initialRect: { width: innerWidth, height: innerHeight },
    // The rows at the beginning need not be drawn.
    initialOffset: follow && target === null ? count * estimate : 0,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => update(undefined as never),
  };
  instance.current ??= new Virtualizer(options);
  const virtual = instance.current;
  // Another function would be called for all rows, each time.
  const measure = useCallback((element: HTMLDivElement | null) => virtual.measureElement(element), []);
  virtual.setOptions(options);
  // The earlier rows of a session come after the last ones, which stay in sight.
  if (atEnd.current && counted.current !== count) virtual.scrollOffset = virtual.getTotalSize();
  counted.current = count;
  useLayoutEffect(() => virtual._didMount(), []);
  useLayoutEffect(() => virtual._willUpdate());

  useEffect(() => {
    atEnd.current = follow;
  }, [id]);
  useLayoutEffect(() => {
    if (count > 0 && target !== null && target >= 0 && reached.current !== `${id} ${target} ${attempt}`) {
      reached.current = `${id} ${target} ${attempt}`;
      atEnd.current = false;
      virtual.scrollToIndex(target, { align });
      // Rows are measured when they are shown, after which the place of the target is known.
      requestAnimationFrame(() => virtual.scrollToIndex(target, { align }));
    }
  });
  // Only when the height has changed: this makes the browser lay everything out.
  const height = virtual.getTotalSize();
  useLayoutEffect(() => {
    if (atEnd.current && scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight;
  }, [id, count, height]);

  const items = virtual.getVirtualItems();
  return (
    <div
      class={`scroller ${name ?? ""}`} ref={scroller} tabIndex={0} role="region" aria-label={label}
      onScroll={(event) => {
        const box = event.currentTarget;
        const { scrollTop: top, scrollHeight: height } = box;
        // What has come is no reason to stop following: only a person scrolls up, unless rows have become lower.
        if (height - top - box.clientHeight < NEAR_PX) atEnd.current = follow;
        else if (top < seen.current.top && height >= seen.current.height) atEnd.current = false;
        seen.current = { top, height };
      }}
    >
      <div class="virtual" style={{ height: `${height}px` }}>
        <div class="virtual-window" role={role} aria-label={label} style={{ transform: `translateY(${items[0]?.start ?? 0}px)` }}>
          {items.map((item) => (
            <div
              key={item.key} data-index={item.index} ref={measure}
              role={role === "feed" ? "article" : "listitem"} aria-posinset={item.index + 1} aria-setsize={count}
              aria-label={role === "feed" ? `${item.index + 1} of ${count}` : undefined}
            >
              {dependsOn ? <Kept on={dependsOn(item.index)} render={() => render(item.index)} /> : render(item.index)}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

interface KeptProps {
  on: readonly unknown[];
  render: () => ComponentChildren;
}

/** Something that is drawn again only if what it depends on has changed. */
class Kept extends Component<KeptProps> {
  override shouldComponentUpdate(next: KeptProps): boolean {
    return next.on.some((value, at) => value !== this.props.on[at]);
  }

  override render(): ComponentChildren {
    return this.props.render();
  }
}
