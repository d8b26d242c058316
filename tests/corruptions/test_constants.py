from bacs.corruptions import TEST, VALIDATION
from bacs.corruptions.constants import CONSTANTS


def test_both_tables_have_five_rows_for_each_corruption():
    assert set(CONSTANTS) == {"cifar", "imagenet"}
    for table in CONSTANTS.values():
        assert tuple(table) == TEST + VALIDATION
        assert all(len(rows) == 5 for rows in table.values())


def test_rows_that_are_easily_mistyped():
    cifar, imagenet = CONSTANTS["cifar"], CONSTANTS["imagenet"]
    assert cifar["fog"][4] == (1.5, 1.75)
    assert imagenet["fog"][4] == (3, 1.4)
    assert cifar["snow"][3] == (0.25, 0.3, 2.25, 0.6, (12, 6), 0.85)
    assert imagenet["snow"][3] == (0.55, 0.3, 4.5, 0.85, (12, 8), 0.65)
    assert [round(part * 224) for part in imagenet["elastic_transform"][0]] == [488, 171, 24]
    assert [part * 32 for part in cifar["elastic_transform"][4]] == [3.2, 0.96, 0.96]
