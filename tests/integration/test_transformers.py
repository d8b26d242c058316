"""Hugging Face classifiers: logits in an output object, and a mask beside the tokens."""

import pytest
import torch

from integration.libraries import check_contract

pytestmark = pytest.mark.needs("transformers")


@pytest.fixture(scope="module")
def transformers():
    import transformers

    return transformers


def test_an_image_classifier(transformers, tmp_path):
    config = transformers.ViTConfig(
        image_size=32,
        patch_size=8,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        num_labels=5,
    )
    check_contract(lambda: transformers.ViTForImageClassification(config), tmp_path / "run", norm_affine=6)


def test_an_image_classifier_with_batch_norm(transformers, tmp_path):
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], num_labels=5, layer_type="basic"
    )
    check_contract(lambda: transformers.ResNetForImageClassification(config), tmp_path / "run", norm_affine=12)


def test_a_text_classifier_whose_mask_is_made_of_its_tokens(transformers, tmp_path):
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        num_labels=3,
    )

    def build():
        model = transformers.BertForSequenceClassification(config)
        model.register_forward_pre_hook(
            lambda module, inputs, keywords: (inputs, {"attention_mask": inputs[0] != config.pad_token_id}),
            with_kwargs=True,
        )
        return model

    tokens = torch.randint(1, 50, (10, 7), generator=torch.Generator().manual_seed(0))
    tokens[:5, 4:] = config.pad_token_id
    check_contract(build, tmp_path / "run", norm_affine=6, inputs=tokens)
