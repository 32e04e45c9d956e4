"""Makes a model that any engine can serve on a processor: a Llama of two layers with random weights,
and a tokenizer of its own. It answers nonsense, quickly, through the engine's real code.

    /opt/venv/bin/python3 tiny_model.py FOLDER

Needs torch, transformers and tokenizers, which come with vLLM.
"""

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEXT = "the quick brown fox jumps over the lazy dog and names a colour"
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"


def tokenizer():
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<s>", "</s>"]
    trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=special, initial_alphabet=alphabet)
    made.train_from_iterator([TEXT], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>")
    fast.chat_template = TEMPLATE
    return fast


def main(folder):
    torch.manual_seed(1)
    words = tokenizer()
    words.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(words),
        # Heads of 80: for most others vLLM takes AMX, which ends it on some virtual machines that have it.
        hidden_size=320,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        bos_token_id=words.bos_token_id,
        eos_token_id=words.eos_token_id,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


if __name__ == "__main__":
    main(sys.argv[1])
