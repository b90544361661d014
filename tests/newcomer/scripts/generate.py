"""A language model that answers, token by token, and a filter of the next token that is written in Python.

generate.py            the filter looks at each word of the vocabulary
generate.py --whole    all at once
"""

import sys
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LogitsProcessor, LogitsProcessorList

TOKENS, VOCABULARY = 100, 2_000
BANNED = set(range(0, VOCABULARY, 7))


class Filter(LogitsProcessor):
    def __call__(self, input_ids, scores):
        if "--whole" in sys.argv:
            return scores.index_fill(1, torch.tensor(sorted(BANNED)), -torch.inf)
        kept = [-torch.inf if word in BANNED else score for word, score in enumerate(scores[0].tolist())]  # the cause
        return torch.tensor([kept])


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=VOCABULARY, n_positions=256, n_embd=128, n_layer=4, n_head=4)
    model = GPT2LMHeadModel(config).eval()
    prompt = torch.randint(1, VOCABULARY, (1, 16))
    for _ in range(6):
        begun = time.perf_counter()
        model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            min_new_tokens=TOKENS,
            max_new_tokens=TOKENS,
            do_sample=False,
            pad_token_id=0,
            logits_processor=LogitsProcessorList([Filter()]),
        )
        print(f"step_ms {(time.perf_counter() - begun) / TOKENS * 1e3:.3f}")


if __name__ == "__main__":
    main()
