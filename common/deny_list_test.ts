import { equal, match } from "node:assert/strict";
import { createRouterTransport } from "@connectrpc/connect";
import { DenyListService } from "@heddle/proto/gen/identity";
import { DenyListCopy } from "./deny_list.ts";
import type { ShownCertificate } from "./identity.ts";
import { BACKDATE_MS } from "./pki.ts";

const ISSUED_AT = 1_700_000_000_000;

function shownBy(parts: Partial<ShownCertificate> = {}): ShownCertificate {
  return {
    identity: { cluster: "test", role: "monitor", name: "prom" },
    hosts: [],
    serial: "4f01",
    notBefore: ISSUED_AT - BACKDATE_MS,
    notAfter: ISSUED_AT + 3_600_000,
    ...parts,
  };
}

/** A control that says these lists, one after the other, and then no more. */
function saying(...lists: readonly (readonly { struck: string; issuedBeforeMs?: bigint }[])[]) {
  return createRouterTransport((router) =>
    router.service(DenyListService, {
      async *watchDenyList(_request, { signal }) {
        for (const list of lists) {
          yield { denied: list.map((each) => ({ by: "ann", reason: "lost", ...each })) };
        }
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      },
    })
  );
}

/** Follows until this many lists were taken. */
async function follow(copy: DenyListCopy, transport: ReturnType<typeof saying>, lists: number) {
  const stop = new AbortController();
  const taken = Promise.withResolvers<void>();
  let left = lists;
  copy.onChange(() => --left === 0 && taken.resolve());
  const following = copy.follow(transport, stop.signal);
  await taken.promise;
  stop.abort();
  await following;
}

Deno.test("a copy of the deny list refuses by serial and by holder, and only what was issued before", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const copy = new DenyListCopy(folder);
    await copy.load();
    equal(copy.refuses(shownBy()), undefined);
    await follow(copy, saying([{ struck: "serial/4f01" }]), 1);
    match(copy.refuses(shownBy()) ?? "", /ann struck it: lost/);
    equal(copy.refuses(shownBy({ serial: "4f02" })), undefined);
    // Each list is the whole list.
    const holder = { struck: "monitor/prom", issuedBeforeMs: BigInt(ISSUED_AT) };
    await follow(copy, saying([], [holder]), 2);
    match(copy.refuses(shownBy({ serial: "4f02" })) ?? "", /ann struck it/);
    const later = shownBy({ notBefore: ISSUED_AT - BACKDATE_MS + 1_000 });
    equal(copy.refuses(later), undefined);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a copy of the deny list is there again after a restart without control, and one that is broken is none", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await follow(new DenyListCopy(folder), saying([{ struck: "serial/4f01" }]), 1);
    const again = new DenyListCopy(folder);
    await again.load();
    match(again.refuses(shownBy()) ?? "", /ann struck it/);
    await Deno.writeTextFile(`${folder}/deny_list.json`, '{"version": 1, "struck": 7}');
    const broken = new DenyListCopy(folder);
    await broken.load();
    equal(broken.refuses(shownBy()), undefined);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a control that knows no deny list is asked once", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const older = createRouterTransport(() => {});
    await new DenyListCopy(folder).follow(older, new AbortController().signal);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
