/** The router's configuration: `/etc/heddle/router.yaml`. */
import { conflictsOf } from "./settings/conflicts.ts";
import { fieldsSchema } from "./settings/fields.ts";

/** The schema of router.yaml: its keys, and the rules across them. */
export const configSchema = fieldsSchema.superRefine((config, context) => {
  for (const [path, message] of conflictsOf(config)) {
    context.addIssue({ code: "custom", path: [...path], message });
  }
});
