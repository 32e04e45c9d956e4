/** Who are you? A token that control knows, as for any client of the admin API. */
import { useState } from "preact/hooks";
import { logIn, wordsOf } from "../call.ts";
import { Notice } from "../parts/notice.tsx";

export function Login({ onLoggedIn }: { readonly onLoggedIn: () => void }) {
  const [token, setToken] = useState("");
  const [error, setError] = useState("");
  const send = async (event: Event) => {
    event.preventDefault();
    try {
      await logIn(token);
      onLoggedIn();
    } catch (error) {
      setError(wordsOf(error));
    }
  };
  return (
    <main class="login">
      <form onSubmit={send}>
        <h1>Heddle</h1>
        <label>
          Token
          <input
            type="password"
            autocomplete="current-password"
            required
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        {error === "" ? null : <Notice tone="bad">{error}</Notice>}
        <button type="submit" class="main">Log in</button>
        <p class="quiet">
          A token is made with <code>heddle ca token</code> and entered in control's{" "}
          <code>admin.tokens_file</code>.
        </p>
      </form>
    </main>
  );
}
